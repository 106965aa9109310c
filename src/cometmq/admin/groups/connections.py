"""Who is connected: consumers, producers, and what a consumer tells about itself."""

from __future__ import annotations

from functools import partial

from cometmq.admin.calls import Calls
from cometmq.admin.errors import NeverOnline, NoSuchTopic
from cometmq.admin.fan_out import ByServer
from cometmq.admin.groups.groups import read_groups
from cometmq.admin.target import ALL_BROKERS, Target
from cometmq.base.errors import CometError, UsageError
from cometmq.client.errors import NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import RETRY_PREFIX, check_group
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.connection import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerTable,
)
from cometmq.protocol.bodies.group import SubscriptionOfGroup
from cometmq.protocol.bodies.running import ConsumerRunningInfo
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import (
    GetConsumerConnectionHeader,
    GetConsumerRunningInfoHeader,
    GetProducerConnectionHeader,
    QuerySubscriptionByConsumerHeader,
)
from cometmq.protocol.reply_errors import BrokerReplyError, ConsumerNotOnline

RUNNING_INFO_SECONDS = 12.0
"""The broker gives the client ten."""


class Connections:
    """``admin.connections``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def consumers(self, group: str, *, address: str | None = None) -> ConsumerConnection:
        """The members of a group and what they subscribe to: what all brokers of its retry topic know (203).

        Args:
            address: ask this broker only.

        Raises:
            ConsumerNotOnline: no broker knows a member.
            PartialFailure: a broker did not answer, and the others know no member.
            NeverOnline: no consumer of the group ever connected.
        """
        check_group(group)
        header = GetConsumerConnectionHeader(consumer_group=group)

        async def ask(one: str) -> ConsumerConnection:
            code = RequestCode.GET_CONSUMER_CONNECTION_LIST
            return await self._calls.table(one, code, ConsumerConnection, header)

        answers = await self._calls.fan_out.each(await self._brokers_of(group, address), ask)
        if answers.done:
            return merged(answers.values())
        for error in answers.failed.values():
            if isinstance(error, ConsumerNotOnline):
                raise error
        answers.raise_failed(f"asking who is online of group {group!r}")
        raise NoRoute(f"group {group!r} has no broker")

    async def all_consumers(
        self, target: Target = ALL_BROKERS
    ) -> ByServer[dict[str, ConsumerConnection]]:
        """All consumers that each broker knows, by group; groups of which nobody is online there are left out.

        It takes a request per broker (201), and one for each of its groups (203).
        """
        groups = await self._calls.fan_out.each(
            await self._calls.addresses(target), partial(read_groups, self._calls)
        )

        async def ask(address: str, group: str) -> ConsumerConnection | None:
            code = RequestCode.GET_CONSUMER_CONNECTION_LIST
            header = GetConsumerConnectionHeader(consumer_group=group)
            try:
                return await self._calls.table(address, code, ConsumerConnection, header)
            except ConsumerNotOnline:
                return None

        answers = await self._calls.fan_out.many(groups.done, ask)
        online = {
            address: {group: told for group, told in table.items() if told is not None}
            for address, table in answers.done.items()
        }
        return ByServer(online, {**groups.failed, **answers.failed})

    async def producers(self, group: str, topic: str) -> ProducerConnection:
        """The members of a producer group: what all brokers of a topic know (204).

        Raises:
            BrokerReplyError: no broker knows a member.
            NoRoute: no name server knows the topic.
        """
        header = GetProducerConnectionHeader(producer_group=group)

        async def ask(address: str) -> ProducerConnection:
            code = RequestCode.GET_PRODUCER_CONNECTION_LIST
            return await self._calls.table(address, code, ProducerConnection, header)

        addresses = (await self._calls.masters_of(topic)).values()
        answers = await self._calls.fan_out.each(addresses, ask)
        if not answers.done:
            for error in answers.failed.values():
                if isinstance(error, BrokerReplyError):
                    raise error
            answers.raise_failed(f"asking who is online of producer group {group!r}")
        members = {one.client_id: one for told in answers.values() for one in told.connection_set}
        return ProducerConnection(connection_set=_sorted(members))

    async def all_producers(self, target: Target = ALL_BROKERS) -> ByServer[ProducerTable]:
        """All producers that each broker knows, by group (328)."""

        async def ask(address: str) -> ProducerTable:
            code = RequestCode.GET_ALL_PRODUCER_INFO
            return await self._calls.table(address, code, ProducerTable)

        return await self._calls.fan_out.each(await self._calls.addresses(target), ask)

    async def running_info(
        self,
        group: str,
        client_id: str,
        *,
        with_stacks: bool = False,
        address: str | None = None,
    ) -> ConsumerRunningInfo:
        """What a consumer tells about itself: settings, queues, rates (307), by way of a broker that knows it.

        Args:
            with_stacks: what its threads do, too.

        Raises:
            BrokerReplyError: the client is not online, or did not answer.
            NeverOnline: no consumer of the group ever connected.
        """
        check_group(group)
        if not client_id:
            raise UsageError("expected the id of a client, as admin.connections.consumers tells it")
        header = GetConsumerRunningInfoHeader(
            consumer_group=group, client_id=client_id, jstack_enable=with_stacks
        )
        failure: CometError = NoRoute(f"group {group!r} has no broker")
        for one in await self._brokers_of(group, address):
            try:
                reply = await self._calls.ask(
                    one,
                    RequestCode.GET_CONSUMER_RUNNING_INFO,
                    header,
                    timeout=RUNNING_INFO_SECONDS,
                )
            except CometError as error:
                failure = error
                continue
            return ConsumerRunningInfo.decode(reply.body)
        raise failure

    async def subscription(self, group: str, topic: str) -> ByServer[SubscriptionData | None]:
        """What a group subscribes to in a topic, as each broker of the topic knows it (345); None if it is offline.

        RocketMQ 4 does not know the request; ``consumers`` tells it for all topics of a group.
        """
        header = QuerySubscriptionByConsumerHeader(group=group, topic=topic)

        async def ask(address: str) -> SubscriptionData | None:
            code = RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER
            return (
                await self._calls.table(address, code, SubscriptionOfGroup, header)
            ).subscription_data

        addresses = (await self._calls.masters_of(topic)).values()
        return await self._calls.fan_out.each(addresses, ask)

    async def holders(self, group: str) -> dict[MessageQueue, str]:
        """Which client consumes which queue. Clients that do not answer are left out. Raises as ``consumers``."""
        members = [one.client_id for one in (await self.consumers(group)).connection_set]

        async def ask(client_id: str) -> ConsumerRunningInfo:
            return await self.running_info(group, client_id)

        told = await self._calls.fan_out.each(members, ask)
        return {
            queue: client_id for client_id, info in told.done.items() for queue in info.mq_table
        }

    async def _brokers_of(self, group: str, address: str | None) -> list[str]:
        if address:
            return [address]
        try:
            return list((await self._calls.masters_of(f"{RETRY_PREFIX}{group}")).values())
        except NoSuchTopic:
            raise NeverOnline(f"no consumer of group {group!r} was ever online here") from None


def merged(tables: list[ConsumerConnection]) -> ConsumerConnection:
    """What several brokers know. They differ while a client starts or stops."""
    first = tables[0]
    return ConsumerConnection(
        connection_set=_sorted({one.client_id: one for t in tables for one in t.connection_set}),
        subscription_table={
            topic: subscription
            for table in reversed(tables)
            for topic, subscription in table.subscription_table.items()
        },
        consume_type=first.consume_type,
        message_model=first.message_model,
        consume_from_where=first.consume_from_where,
        subscription_mismatch=next(
            (t.subscription_mismatch for t in tables if t.subscription_mismatch), None
        ),
    )


def _sorted(members: dict[str, ClientConnection]) -> list[ClientConnection]:
    return [members[name] for name in sorted(members)]
