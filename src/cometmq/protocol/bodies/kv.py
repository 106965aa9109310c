"""A plain table of strings: replies to 28, 103 and 219."""

from __future__ import annotations

import msgspec

from cometmq.protocol.json_body import JsonBody


class KVTable(JsonBody):
    table: dict[str, str] = msgspec.field(default_factory=dict)
