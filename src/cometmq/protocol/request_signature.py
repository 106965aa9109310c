"""RocketMQ's request signature (ACL 1.0): HMAC-SHA1 over the values of the ext fields by order of key, then the body.

The client signs every request with ``sign``; a server keeps a ``Verifier`` per account.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from cometmq.native.choice import twin
from cometmq.protocol.command import Body, Command

_twin = twin("signatures")

ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"

# Clients up to 4.9.3 add this field after they have signed.
_UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
_UNIQUE_KEY_SIGNED_AFTER_VERSION: Final = 399

PASSED_ON_MARK: Final = "cometmqPassedOn"
"""A field of requests that a broker passes on to its master, after the client has signed them."""
PASSED_ON_FOR: Final = "cometmqPassedOnFor"
"""The account of that client, whose rights count, not those of the broker."""

# Clients of 5.x add the first two after they have signed. What a broker signs itself has no other fields than that.
_ADDED_LATER: Final = ("__ZONE_NAME", "__ZONE_MODE", PASSED_ON_MARK, PASSED_ON_FOR)

_ORDERS_MAX: Final = 1024
_ORDER_CHARS_MAX: Final = 512
_HMAC_BLOCK_BYTES: Final = 64


def sign(command: Command, access_key: str, secret_key: str, token: str | None = None) -> None:
    """Add access key, token and signature to the request. Fields added later would break the signature."""
    ext = dict(command.ext or {})
    ext[ACCESS_KEY] = access_key
    if token is not None:
        ext[SECURITY_TOKEN] = token
    ext[SIGNATURE] = signature_of(ext, command.body, secret_key, body_parts=command.body_parts)
    command.ext = ext


def signature_of(
    ext: Mapping[str, str],
    body: Body,
    secret_key: str,
    *,
    body_parts: list[Body] | None = None,
) -> str:
    """The Base64 text of the signature over all of ``ext`` but the signature itself."""
    mac = hmac.new(secret_key.encode(), digestmod=hashlib.sha1)
    for key in sorted(ext, key=_java_order):
        if key != SIGNATURE:
            mac.update(ext[key].encode())
    for part in body_parts if body_parts is not None else [body]:
        mac.update(part)
    return base64.b64encode(mac.digest()).decode()


class Verifier:
    """Checks signatures made with one secret.

    HMAC is two nested hashes whose first blocks depend on the secret alone; here they are hashed once. A check takes 2
    microseconds instead of the 7 that ``hmac`` and sorting each time take. Its repr does not show the secret.

    Attributes:
        key: the same for runs of requests that were not decoded (``native.send_run``); None without the twin.
    """

    __slots__ = ("_inner", "_outer", "key")

    def __init__(self, secret_key: str) -> None:
        key = secret_key.encode("utf-8", "surrogatepass")
        if len(key) > _HMAC_BLOCK_BYTES:
            key = hashlib.sha1(key).digest()
        key = key.ljust(_HMAC_BLOCK_BYTES, b"\0")
        self.key: Any = _twin.Key(key) if _twin else None
        self._inner = hashlib.sha1(bytes(byte ^ 0x36 for byte in key))
        self._outer = hashlib.sha1(bytes(byte ^ 0x5C for byte in key))

    def is_signed(self, command: Command) -> bool:
        """Whether a received request carries the signature of this secret, by the rules of its client's version."""
        ext = command.ext
        if ext is None or (given := ext.get(SIGNATURE)) is None:
            return False
        left_out: tuple[str, ...] = ()
        if command.version <= _UNIQUE_KEY_SIGNED_AFTER_VERSION:
            left_out = (_UNIQUE_KEY_QUERY,)
        try:
            given_bytes = given.encode("ascii")
        except UnicodeEncodeError:
            return False
        if hmac.compare_digest(given_bytes, self._signature(ext, command.body, left_out)):
            return True
        if not any(field in ext for field in _ADDED_LATER):
            return False
        left_out += _ADDED_LATER
        return hmac.compare_digest(given_bytes, self._signature(ext, command.body, left_out))

    def _signature(self, ext: Mapping[str, str], body: Body, left_out: tuple[str, ...]) -> bytes:
        # What is left out is one element: no name of a field can be mistaken for it.
        keys = (left_out, *ext)
        values = _orders.get(keys) or _order(keys, [key for key in ext if key not in left_out])
        inner = self._inner.copy()
        inner.update("".join(values(ext)).encode("utf-8", "surrogatepass"))
        if body:
            inner.update(body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return binascii.b2a_base64(outer.digest(), newline=False)


Values = Callable[[Mapping[str, str]], Any]
"""The values to sign, in order; or the one value, which joins to itself."""

_orders: Final[dict[tuple[object, ...], Values]] = {}
"""By the names of fields: clients send them in the same order each time, so they need to be sorted only once. Strangers
can add to it, so it holds few entries for all clients together, and short names only."""


def _order(keys: tuple[object, ...], signed: list[str]) -> Values:
    names = sorted((key for key in signed if key != SIGNATURE), key=_java_order)
    values: Values = itemgetter(*names) if names else _no_values
    if sum(map(len, names)) <= _ORDER_CHARS_MAX:
        if len(_orders) >= _ORDERS_MAX:
            _orders.clear()
        _orders[keys] = values
    return values


def _no_values(ext: Mapping[str, str]) -> tuple[str, ...]:
    return ()


def _java_order(key: str) -> bytes:
    """Java compares strings by UTF-16 unit, which differs from code points above U+FFFF."""
    return key.encode("utf-16-be", "surrogatepass")
