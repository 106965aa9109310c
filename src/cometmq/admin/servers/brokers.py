"""Brokers as servers: figures, settings, upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import ByServer
from cometmq.admin.servers.settings import check_settings, read_settings, write_settings
from cometmq.admin.target import ALL_BROKERS, Place, Target
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.bodies.stats import BrokerConsumeStats, BrokerStatsData
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import GetBrokerConsumeStatsHeader, ViewBrokerStatsHeader
from cometmq.protocol.reply_errors import SystemFault

CONSUME_STATS_SECONDS = 50.0


class Brokers:
    """``admin.brokers``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def places(self, target: Target = ALL_BROKERS) -> list[Place]:
        """The brokers that a target means, as a name server knows them."""
        return await self._calls.places(target)

    async def runtime(self, target: Target = ALL_BROKERS) -> ByServer[dict[str, str]]:
        """What brokers tell about themselves, by RocketMQ's names (28); ``BrokerFigures`` reads them."""

        async def ask(address: str) -> dict[str, str]:
            table = await self._calls.table(address, RequestCode.GET_BROKER_RUNTIME_INFO, KVTable)
            return table.table

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def settings(self, target: Target = ALL_BROKERS) -> ByServer[dict[str, str]]:
        """The settings that brokers run with (26)."""
        return await self._calls.fan_out.each(
            await self._calls.addresses(target),
            partial(read_settings, self._calls, RequestCode.GET_BROKER_CONFIG),
        )

    async def update_settings(
        self, values: Mapping[str, str], target: Target = ALL_BROKERS
    ) -> ByServer[str]:
        """Change settings (25). The answers are remarks: ours say what takes effect at the next start only.

        RocketMQ's broker ignores values that do not fit, and says nothing; read them back.
        """
        check_settings(values)
        return await self._calls.fan_out.each(
            await self._calls.addresses(target, is_change=True),
            partial(write_settings, self._calls, RequestCode.UPDATE_BROKER_CONFIG, values),
        )

    async def consume_stats(
        self,
        target: Target = ALL_BROKERS,
        *,
        only_ordered: bool = False,
        timeout: float = CONSUME_STATS_SECONDS,
    ) -> ByServer[BrokerConsumeStats]:
        """The positions of all groups at each broker (317)."""
        header = GetBrokerConsumeStatsHeader(is_order=only_ordered)

        async def ask(address: str) -> BrokerConsumeStats:
            reply = await self._calls.ask(
                address, RequestCode.GET_BROKER_CONSUME_STATS, header, timeout=timeout
            )
            return BrokerConsumeStats.decode(reply.body)

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def stats(
        self, name: str, key: str, target: Target = ALL_BROKERS
    ) -> ByServer[BrokerStatsData | None]:
        """A counter that brokers keep (315), such as ``TOPIC_PUT_NUMS`` of a topic; None where it never counted."""
        header = ViewBrokerStatsHeader(stats_name=name, stats_key=key)

        async def ask(address: str) -> BrokerStatsData | None:
            return await view_stats(self._calls, address, header)

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def system_topics(self, target: Target = ALL_BROKERS) -> ByServer[list[str]]:
        """Topics that brokers keep for themselves (305)."""

        async def ask(address: str) -> list[str]:
            code = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER
            return (await self._calls.table(address, code, TopicList)).topic_list

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def clean_expired_queues(self, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Remove queue files of which no message is left in the log (306)."""
        return await self._do(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, target)

    async def clean_unused_topics(self, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Remove queues of topics that are no longer defined (316)."""
        return await self._do(RequestCode.CLEAN_UNUSED_TOPIC, target)

    async def delete_expired_log(self, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Delete log files that are older than they are to be kept, now and not at the set hour (329)."""
        return await self._do(RequestCode.DELETE_EXPIRED_COMMITLOG, target)

    async def _do(self, code: RequestCode, target: Target) -> ByServer[None]:
        async def ask(address: str) -> None:
            await self._calls.ask(address, code)

        addresses = await self._calls.addresses(target, is_change=True)
        return await self._calls.fan_out.each(addresses, ask)


async def view_stats(
    calls: Calls, address: str, header: ViewBrokerStatsHeader
) -> BrokerStatsData | None:
    """A counter of a broker; None if it never counted, which brokers answer with an error."""
    try:
        return await calls.table(
            address, RequestCode.VIEW_BROKER_STATS_DATA, BrokerStatsData, header
        )
    except SystemFault as error:
        if "not exist" in (error.remark or ""):
            return None
        raise
