"""RocketMQ's request signature (ACL 1.0): HMAC-SHA1 over the values of the ext fields by order of key, then the body.

The client signs every request with ``sign``; a server compares with ``signature_of`` (see ``is_signed_with``).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from cometmq.protocol.command import Body, Command

ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"

# Clients up to 4.9.3 add this field after they have signed.
_UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
_UNIQUE_KEY_SIGNED_AFTER_VERSION: Final = 399

# Clients of 5.x add these after they have signed.
_ZONE_FIELDS: Final = ("__ZONE_NAME", "__ZONE_MODE")


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
    without: tuple[str, ...] = (),
) -> str:
    """The Base64 text of the signature over all of ``ext`` but the signature itself and the keys in ``without``."""
    mac = hmac.new(secret_key.encode(), digestmod=hashlib.sha1)
    # Java compares strings by UTF-16 unit, which differs from code points above U+FFFF.
    for key in sorted(ext, key=lambda key: key.encode("utf-16-be", "surrogatepass")):
        if key != SIGNATURE and key not in without:
            mac.update(ext[key].encode())
    for part in body_parts if body_parts is not None else [body]:
        mac.update(part)
    return base64.b64encode(mac.digest()).decode()


def is_signed_with(command: Command, secret_key: str) -> bool:
    """Whether a received request carries the signature that this secret makes, by the rules of its client's version."""
    ext = command.ext or {}
    given = ext.get(SIGNATURE)
    if given is None:
        return False
    always: tuple[str, ...] = ()
    if command.version <= _UNIQUE_KEY_SIGNED_AFTER_VERSION:
        always = (_UNIQUE_KEY_QUERY,)
    attempts = [always]
    if any(field in ext for field in _ZONE_FIELDS):
        attempts.append((*always, *_ZONE_FIELDS))
    given_bytes = given.encode()
    return any(
        hmac.compare_digest(
            given_bytes, signature_of(ext, command.body, secret_key, without=without).encode()
        )
        for without in attempts
    )
