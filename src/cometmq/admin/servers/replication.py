"""Replication: how far slaves are, and the history of masters."""

from __future__ import annotations

from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import ByServer
from cometmq.admin.target import ALL_BROKERS, EVERY_SERVER, Target
from cometmq.base.errors import UsageError
from cometmq.protocol.bodies.ha import EpochCache, HaStatus
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.broker import ResetMasterFlushOffsetHeader


class Replication:
    """``admin.replication``. RocketMQ 4 answers none of these: ``failed`` has ``RequestCodeNotSupported`` then."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def status(self, target: Target = ALL_BROKERS) -> ByServer[HaStatus]:
        """How far the slaves of each master are, or a slave itself is (907)."""

        async def ask(address: str) -> HaStatus:
            return await self._calls.table(address, RequestCode.GET_BROKER_HA_STATUS, HaStatus)

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def epochs(self, target: Target = EVERY_SERVER) -> ByServer[EpochCache]:
        """Which part of a log was written under which master (1007); only brokers under a controller have it."""

        async def ask(address: str) -> EpochCache:
            return await self._calls.table(address, RequestCode.GET_BROKER_EPOCH_CACHE, EpochCache)

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def reset_master_flush_offset(self, address: str, offset: int) -> None:
        """Tell a slave how far its master's log is on disk (908)."""
        if offset < 0:
            raise UsageError(f"expected an offset of at least 0, got {offset}")
        header = ResetMasterFlushOffsetHeader(master_flush_offset=offset)
        await self._calls.ask(address, RequestCode.RESET_MASTER_FLUSH_OFFSET, header)
