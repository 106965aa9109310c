"""The state of replication, reply to 907. Names as RocketMQ 5's HARuntimeInfo."""

from __future__ import annotations

import msgspec

from cometmq.protocol.json_body import JsonBody


class HaConnection(msgspec.Struct, rename="camel", kw_only=True):
    """A slave as its master sees it."""

    addr: str
    slave_ack_offset: int
    diff: int
    in_sync: bool
    transferred_byte_in_second: int
    transfer_from_where: int


class HaClient(msgspec.Struct, rename="camel", kw_only=True):
    """A slave as it sees itself. Times are milliseconds since 1970."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    activated: bool = False


class HaStatus(JsonBody, kw_only=True):
    master: bool
    master_commit_log_max_offset: int
    in_sync_slave_nums: int
    ha_connection_info: list[HaConnection] = msgspec.field(default_factory=list)
    ha_client_runtime_info: HaClient = msgspec.field(default_factory=HaClient)
