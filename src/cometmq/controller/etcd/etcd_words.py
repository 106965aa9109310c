"""etcd's transactions, ranges and leases as JSON, and the shapes of its replies. No I/O.

Keys and values travel as base64, numbers of 64 bits as text. Everything is one request, ``kv/txn``: reads are
transactions without a condition. https://etcd.io/docs/v3.5/learning/api/ has the fields.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

Words = dict[str, Any]


class Header(msgspec.Struct):
    cluster_id: int
    revision: int = 0


class KeyValue(msgspec.Struct):
    key: bytes
    value: bytes = b""
    mod_revision: int = 0
    lease: int = 0


class RangeReply(msgspec.Struct):
    kvs: list[KeyValue] = []


class OneReply(msgspec.Struct):
    response_range: RangeReply | None = None


class TxnReply(msgspec.Struct):
    header: Header
    succeeded: bool = False
    responses: list[OneReply] = []

    def found(self, nth: int) -> list[KeyValue]:
        """What the nth operation of the branch read."""
        one = self.responses[nth].response_range if nth < len(self.responses) else None
        return [] if one is None else one.kvs


class GrantReply(msgspec.Struct):
    header: Header
    id: int = msgspec.field(name="ID")
    ttl: int = msgspec.field(name="TTL")


class KeptAlive(msgspec.Struct):
    header: Header
    ttl: int = msgspec.field(name="TTL", default=0)
    """Absent if there is no such lease any more."""


class KeepAliveReply(msgspec.Struct):
    result: KeptAlive

    @property
    def header(self) -> Header:
        return self.result.header


class RevokeReply(msgspec.Struct):
    header: Header


def txn(
    success: Sequence[Words], *, condition: Words | None = None, failure: Sequence[Words] = ()
) -> Words:
    return {
        "compare": [] if condition is None else [condition],
        "success": list(success),
        "failure": list(failure),
    }


def unchanged_since(key: bytes, mod_revision: int) -> Words:
    """0: there is no such key."""
    return {"key": _text(key), "target": "MOD", "result": "EQUAL", "mod_revision": mod_revision}


def put(key: bytes, value: bytes, lease: int = 0) -> Words:
    return {"request_put": {"key": _text(key), "value": _text(value), "lease": lease}}


def get(key: bytes) -> Words:
    return {"request_range": {"key": _text(key)}}


def get_all(prefix: bytes, *, limit: int, changed_since: int = 0) -> Words:
    """Keys that begin with ``prefix``, which ends with a slash; with a revision, those that were changed after it."""
    end = prefix[:-1] + bytes([prefix[-1] + 1])
    words: Words = {"key": _text(prefix), "range_end": _text(end), "limit": limit}
    if changed_since:
        words["min_mod_revision"] = changed_since + 1
    return {"request_range": words}


def _text(data: bytes) -> str:
    return b64encode(data).decode()
