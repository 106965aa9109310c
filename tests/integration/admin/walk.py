"""What an operator does, step by step, on any cluster of two masters: ours in test_walk, RocketMQ's in tests/interop.

Each step has names of its own, so that all of them can share a cluster.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from tests.eventually import eventually

from cometmq.admin import (
    Admin,
    Definitions,
    NoSuchName,
    ResetPoint,
    Step,
    Target,
    TrackType,
    new_group,
    new_topic,
)
from cometmq.base.errors import UsageError
from cometmq.client import ClientConfig, Message, Outcome, PushConsumerConfig, ReceivedMessage
from cometmq.client.aio import Producer, PushConsumer
from cometmq.client.errors import MessageNotFound, NoRoute
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.trace_config import TraceConfig
from cometmq.model.consumption import ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.trace import PubTrace
from cometmq.protocol.bodies.running import ConsumeResult
from cometmq.protocol.reply_errors import ConsumerNotOnline, RequestCodeNotSupported

FROM_START = PushConsumerConfig(
    consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    # Positions are committed soon, so that nothing waits for them.
    client=ClientConfig(persist_offsets_millis=50),
)
# A send that takes long is not sent again: the steps count messages.
PATIENT = ProducerConfig(send_timeout_ms=30_000)
RESET_SECONDS_MAX = 60.0
"""RocketMQ 5 tells a client by the answer to its next pull, and the present one may be held for 20 s."""


@dataclass(frozen=True)
class System:
    """Args: is_rocketmq_4: some requests came with RocketMQ 5, and ours knows them."""

    admin: Admin
    name_servers: str
    cluster: str
    is_rocketmq_4: bool = False
    is_ours: bool = False

    async def topic(self, name: str, queues: int = 2) -> str:
        """A new topic that name servers know."""
        topic = unique(name)
        await self.create_topic(topic, queues)
        return topic

    async def create_topic(self, topic: str, queues: int) -> None:
        made = await self.admin.topics.create(
            new_topic(topic, read_queues=queues, write_queues=queues), Target(cluster=self.cluster)
        )
        assert made.is_complete
        assert len(made.done) == 2

        async def is_known() -> bool:
            try:
                return len((await self.admin.topics.route(topic)).queue_datas) == 2
            except NoRoute:
                return False

        await eventually(is_known, f"name servers know {topic}")

    async def send(self, topic: str, count: int, key: str = "k") -> list[str]:
        """Offset ids of messages that are spread over all queues, and that all requests see."""
        async with Producer(
            unique("shop"), name_servers=self.name_servers, config=PATIENT
        ) as producer:
            sent = [
                await producer.send(Message(topic=topic, body=b"%d" % number, keys=[key], tags="a"))
                for number in range(count)
            ]

        # RocketMQ answers a send before its queue shows the message.
        async def are_queued() -> bool:
            rows = (await self.admin.topics.status(topic)).queues
            ends = {row.queue: row.max_offset for row in rows}
            return all(ends.get(one.queue, 0) > one.queue_offset for one in sent)

        await eventually(are_queued, f"the queues of {topic} have all messages")
        return [one.offset_id for one in sent]

    @asynccontextmanager
    async def consumer(
        self,
        group: str,
        topic: str,
        listener: Callable[[ReceivedMessage], Awaitable[Outcome | None]],
    ) -> AsyncIterator[PushConsumer]:
        """It has begun with all of the topic's queues."""
        async with PushConsumer(
            group, listener=listener, name_servers=self.name_servers, config=FROM_START
        ) as consumer:
            consumer.subscribe(topic)
            queues = len(await self.admin._rooms.calls.queues.queues(topic))

            async def holds_all() -> bool:
                try:
                    held = await self.admin.connections.holders(group)
                except (ConsumerNotOnline, NoRoute):
                    return False
                return sum(queue.topic == topic for queue in held) == queues

            await eventually(holds_all, f"{group} consumes all queues of {topic}")
            yield consumer

        async def is_gone() -> bool:
            try:
                await self.admin.connections.consumers(group)
            except (ConsumerNotOnline, NoRoute):
                return True
            return False

        await eventually(is_gone, f"brokers know that {group} is offline")


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:10]}"


async def servers(system: System) -> None:
    admin = system.admin
    [cluster] = [one for one in await admin.clusters.all() if one.name == system.cluster]
    assert len(cluster.brokers) == 2

    async def tells() -> bool:
        return (await admin.clusters.brokers()).is_complete

    await eventually(tells, "every broker tells figures: RocketMQ's fail in their first second")
    rows = await admin.clusters.brokers(Target(cluster=system.cluster))
    assert [row.place.is_master for row in rows] == [True, True]
    assert all(row.figures and row.figures.version.startswith("V") for row in rows)
    assert all(row.figures and 0 < row.figures.disk_ratio <= 1 for row in rows)
    settings = (await admin.brokers.settings()).raise_failed()
    assert [one["brokerClusterName"] for one in settings.values()] == [system.cluster] * 2
    before = settings.values()[0]["defaultTopicQueueNums"]
    changed = await admin.brokers.update_settings({"defaultTopicQueueNums": "5"})
    assert len(changed.raise_failed().done) == 2
    told = await admin.brokers.settings()
    assert [one["defaultTopicQueueNums"] for one in told.values()] == ["5", "5"]
    await admin.brokers.update_settings({"defaultTopicQueueNums": before})
    assert "listenPort" in (await admin.name_servers.settings()).values()[0]
    assert all("TBW102" in names for names in (await admin.brokers.system_topics()).values())
    for upkeep in (
        admin.brokers.clean_expired_queues,
        admin.brokers.clean_unused_topics,
        admin.brokers.delete_expired_log,
    ):
        assert (await upkeep(Target(cluster=system.cluster))).raise_failed().is_complete


async def names_that_do_not_exist(system: System) -> None:
    admin = system.admin
    with pytest.raises(NoSuchName, match=f"no cluster 'nowhere'; there are: {system.cluster}"):
        await admin.brokers.settings(Target(cluster="nowhere"))
    with pytest.raises(NoSuchName, match=r"no broker 'nobody'; there are: "):
        await admin.brokers.settings(Target(broker="nobody"))
    with pytest.raises(NoRoute, match="does not know topic 'nothing'"):
        await admin.topics.status("nothing")
    with pytest.raises(NoSuchName, match="no group 'nobody'"):
        await admin.groups.progress("nobody")
    with pytest.raises(UsageError, match="one of cluster, broker and address"):
        Target(cluster="a", broker="b")
    with pytest.raises(UsageError, match="expected an address like"):
        Target(address="nowhere")


async def key_values(system: System) -> None:
    kv, namespace = system.admin.kv, unique("space")
    assert await kv.get(namespace, "k") is None
    assert await kv.of_namespace(namespace) == {}
    assert (await kv.put(namespace, "k", "v")).is_complete
    assert await kv.get(namespace, "k") == "v"
    assert await kv.of_namespace(namespace) == {"k": "v"}
    assert (await kv.delete(namespace, "k")).is_complete
    assert await kv.get(namespace, "k") is None


async def write_permission(system: System) -> None:
    admin = system.admin
    topic = await system.topic("guarded")
    route = await admin.topics.route(topic)
    name = route.broker_datas[0].broker_name
    wiped = (await admin.name_servers.wipe_write_perm(name)).raise_failed()
    assert wiped.values()[0] > 0
    perms = {one.broker_name: one.perm for one in (await admin.topics.route(topic)).queue_datas}
    assert perms[name] == 4
    assert (await admin.name_servers.add_write_perm(name)).values()[0] > 0
    perms = {one.broker_name: one.perm for one in (await admin.topics.route(topic)).queue_datas}
    assert perms[name] == 6
    assert (await admin.name_servers.wipe_write_perm("nobody")).values() == [0]


async def topics(system: System) -> None:
    admin = system.admin
    topic = await system.topic("orders", queues=3)
    assert topic in await admin.topics.names()
    assert topic in await admin.topics.names(system.cluster)
    assert await admin.topics.clusters(topic) == [system.cluster]
    [row] = [one for one in await admin.topics.rows() if one.name == topic]
    assert (row.read_queues, row.write_queues) == (6, 6)
    await system.send(topic, 6)
    status = await admin.topics.status(topic)
    assert (len(status.queues), status.message_count) == (6, 6)
    assert all(one.updated_ms > 0 for one in status.queues)
    before = (await admin.topics.set_perm(topic, 4)).raise_failed()
    assert [config.perm for config in before.values()] == [6, 6]
    assert {one.perm for one in (await admin.topics.get(topic)).by_broker.values()} == {4}
    assert {one.read_queue_nums for one in (await admin.topics.get(topic)).by_broker.values()} == {
        3
    }
    with pytest.raises(UsageError, match=r"expected a permission of 2 .* got 9"):
        await admin.topics.set_perm(topic, 9)
    with pytest.raises(UsageError, match="illegal characters"):
        await admin.topics.create(new_topic("no topic!"))
    with pytest.raises(NoSuchName, match="no cluster 'nowhere'; there are: "):
        await admin.topics.delete(topic, "nowhere")
    assert (await admin.topics.delete(topic)).is_complete
    with pytest.raises(NoRoute):
        await admin.topics.route(topic)
    assert topic not in [one.name for one in await admin.topics.rows()]


async def groups(system: System) -> None:
    admin = system.admin
    group, other = unique("billing"), unique("audit")
    assert len((await admin.groups.create(new_group(group, retries=3))).done) == 2
    assert (await admin.groups.create_many([new_group(other)])).is_complete
    assert {group, other} <= set(await admin.groups.names())
    [row] = [one for one in await admin.groups.rows() if one.name == group]
    assert {config.retry_max_times for config in row.by_broker.values()} == {3}
    progress = await admin.groups.progress(group)
    assert (progress.queues, progress.lag) == ([], 0)
    if not system.is_rocketmq_4:
        topic = await system.topic("read")
        assert set((await admin.groups.is_readable(group, topic)).values()) == {True}
        assert set((await admin.groups.set_readable(group, topic, False)).values()) == {False}
        assert (await admin.groups.set_consume_mode(group, topic, "POP")).is_complete
        with pytest.raises(UsageError, match="expected the mode PULL or POP, got 'PUSH'"):
            await admin.groups.set_consume_mode(group, topic, "PUSH")
    assert (await admin.groups.delete(group, remove_offsets=True)).is_complete
    if not system.is_rocketmq_4 and not system.is_ours:
        return  # RocketMQ 5 keeps a deleted group for a while
    assert group not in set(await admin.groups.names())


async def consuming(system: System) -> None:
    admin = system.admin
    topic, group = await system.topic("consumed"), unique("billing")
    got: list[bytes] = []

    async def listener(message: ReceivedMessage) -> None:
        got.append(message.body)

    async with (
        system.consumer(group, topic, listener),
        Producer("web-shop", name_servers=system.name_servers) as producer,
    ):
        for number in range(10):
            await producer.send(Message(topic=topic, body=b"%d" % number))
        await eventually(lambda: len(got) == 10, "all are consumed")
        online = await admin.connections.consumers(group)
        [member] = online.connection_set
        assert (online.consume_type, online.message_model) == (
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
        )
        assert topic in online.subscription_table
        every = (await admin.connections.all_consumers()).raise_failed()
        assert all(
            table[group].connection_set[0].client_id == member.client_id for table in every.values()
        )
        info = await admin.connections.running_info(group, member.client_id)
        assert topic in {one.topic for one in info.subscription_set}
        with pytest.raises(Exception, match="not online"):
            await admin.connections.running_info(group, "nobody@1")
        assert set((await admin.connections.holders(group)).values()) == {member.client_id}
        sellers = await admin.connections.producers("web-shop", topic)
        assert len(sellers.connection_set) == 1
        everyone = (await admin.connections.all_producers()).raise_failed()
        assert all("web-shop" in table.data for table in everyone.values())
        assert group in (await admin.topics.groups(topic)).rows
        [consumed] = [one for one in await admin.topics.all_groups() if one.topic == topic]
        assert consumed.groups == [group]
        if not system.is_rocketmq_4:
            told = (await admin.connections.subscription(group, topic)).raise_failed()
            assert [one and one.sub_string for one in told.values()] == ["*", "*"]

        async def is_caught_up() -> bool:
            return (await admin.groups.progress(group, [topic])).lag == 0

        await eventually(is_caught_up, "positions are committed")

        async def is_told() -> bool:
            [row] = [one for one in await admin.groups.summary() if one.group == group]
            return row.members == 1 and row.lag == 0 and row.message_model == "CLUSTERING"

        await eventually(is_told, "the summary says that one member is online, with no lag")
        if not system.is_ours:
            # Java's broker asks the client; ours, too, but both need it online.
            assert (await admin.offsets.of_clients(group, topic)).done
    with pytest.raises((ConsumerNotOnline, NoRoute)):
        await admin.connections.consumers(group)
    await system.send(topic, 4)
    progress = await admin.groups.progress(group)
    assert progress.lag == 4
    assert {row.queue.topic for row in progress.queues} >= {topic}
    [row] = [one for one in await admin.groups.summary() if one.group == group]
    assert (row.members, row.topics.get(topic)) == (0, 4)
    [rates] = await admin.topics.traffic([topic])
    assert rates.topic == topic
    assert list(rates.groups) == [group]
    assert topic in (await admin.groups.topics(group)).rows
    spans = await admin.offsets.time_span(group, topic)
    assert len(spans) == 4
    stats = (await admin.brokers.consume_stats()).raise_failed()
    lags = [
        lag.broker_offset - lag.consumer_offset
        for told in stats.values()
        for of_groups in told.consume_stats_list
        for table in of_groups.get(group, [])
        for queue, lag in table.offset_table.items()
        if queue.topic == topic
    ]
    assert sum(lags) == 4


async def resets_online(system: System) -> None:
    """Clients are told. None was here before: a RocketMQ 5 broker keeps the pulls of one that has left, and they take
    the reset with them.
    """
    admin = system.admin
    topic, group = await system.topic("reset"), unique("billing")
    got: list[bytes] = []

    async def listener(message: ReceivedMessage) -> None:
        got.append(message.body)

    async def is_caught_up() -> bool:
        progress = await admin.groups.progress(group, [topic])
        return len(got) >= 8 and progress.lag == 0

    await system.send(topic, 8)
    async with system.consumer(group, topic, listener):
        await eventually(is_caught_up, "all are consumed")
        moves = await admin.offsets.preview(group, topic, ResetPoint.beginning())
        assert [(move.before, move.after) for move in moves] == [
            (row.max_offset, 0) for row in (await admin.topics.status(topic)).queues
        ]
        assert sum(move.again for move in moves) == 8
        assert (await admin.groups.progress(group, [topic])).lag == 0, "a preview changes nothing"
        got.clear()
        assert (await admin.offsets.reset(group, topic, ResetPoint.beginning())).is_complete
        await eventually(lambda: len(got) >= 8, "all are consumed again", RESET_SECONDS_MAX)
        await eventually(is_caught_up, "positions are committed")


async def resets_offline(system: System) -> None:
    admin = system.admin
    topic, group, other = await system.topic("reset"), unique("billing"), unique("audit")

    async def lag() -> int:
        return (await admin.groups.progress(group, [topic])).lag

    await admin.groups.create_many([new_group(group), new_group(other)])
    await system.send(topic, 8)
    ends = {row.queue: row.max_offset for row in (await admin.topics.status(topic)).queues}
    count = sum(ends.values())
    committed = await admin.offsets.commit(group, ends)
    assert (dict(committed.offsets), dict(committed.failed)) == (ends, {})
    assert await lag() == 0
    assert (await admin.offsets.reset(group, topic, ResetPoint.beginning())).is_complete
    assert await lag() == count
    later = ResetPoint.time((await admin.topics.status(topic)).queues[0].updated_ms + 3_600_000)
    assert (await admin.offsets.reset(group, topic, later, force=False)).offsets == {}
    assert await lag() == count, "without force nothing is passed over"
    assert (await admin.offsets.skip(group, topic)).is_complete
    assert await lag() == 0

    cloned = await admin.offsets.clone(group, other, topic)
    assert dict(cloned.offsets) == ends
    copied = await admin.groups.progress(other, [topic])
    assert {one.queue: one.consumer_offset for one in copied.queues} == ends
    with pytest.raises(UsageError, match="expected two groups"):
        await admin.offsets.clone(group, group, topic)

    empty = unique("empty")
    await admin.groups.create(new_group(empty))
    with pytest.raises(NoSuchName, match="has no positions in topic"):
        await admin.offsets.clone(empty, other, topic)

    queue = next(queue for queue, end in ends.items() if end > 1)
    moved = await admin.offsets.reset(
        other, topic, ResetPoint.at(queue.queue_id, 1), broker=queue.broker_name
    )
    assert moved.is_complete
    assert dict(moved.offsets) == {queue: 1}
    with pytest.raises(NoSuchName, match=r"has no offset 99; expected 0 to "):
        await admin.offsets.reset(other, topic, ResetPoint.at(queue.queue_id, 99))
    with pytest.raises(NoSuchName, match="no queue '7'"):
        await admin.offsets.reset(other, topic, ResetPoint.at(7, 0))
    with pytest.raises(NoSuchName, match="at broker 'nobody'"):
        await admin.offsets.reset(other, topic, ResetPoint.end(), broker="nobody")
    with pytest.raises(NoRoute):
        await admin.offsets.reset(other, unique("nothing"), ResetPoint.end())
    with pytest.raises(UsageError, match="milliseconds since 1970"):
        ResetPoint.time(-5)


async def messages(system: System) -> None:
    admin = system.admin
    topic = await system.topic("found")
    sent = await admin.messages.send(Message(topic=topic, body=b"first", keys=["k-1"], tags="a"))
    by_id = await admin.messages.by_id(sent.offset_id)
    assert (by_id.body, by_id.message_id) == (b"first", sent.message_id)

    async def by_key() -> list[ReceivedMessage]:
        return await admin.messages.by_key(topic, "k-1")

    assert [one.body for one in await eventually(by_key, "it is indexed")] == [b"first"]
    assert (await admin.messages.by_id(sent.message_id, topic)).body == b"first"
    assert len(await admin.messages.all_by_id(topic, sent.message_id)) == 1
    assert (await admin.messages.by_offset(sent.queue, sent.queue_offset)).body == b"first"
    with pytest.raises(MessageNotFound, match="no message at offset 9"):
        await admin.messages.by_offset(sent.queue, 9)
    await system.send(topic, 40)
    bodies = [one.body async for one in admin.messages.scan(topic)]
    assert len(bodies) == 41
    later = by_id.store_timestamp + 3_600_000
    assert [one async for one in admin.messages.scan(topic, begin_ms=later)] == []
    earlier = by_id.store_timestamp - 3_600_000
    assert [one async for one in admin.messages.scan(topic, end_ms=earlier)] == []
    found = [one async for one in admin.messages.scan(topic, begin_ms=earlier, end_ms=later)]
    assert len(found) == 41
    tagged = [one async for one in admin.messages.scan(topic, expression="none")]
    assert tagged == []
    ranges = await admin.messages.ranges(topic, queue_id=0)
    assert sorted(queue.queue_id for queue in ranges) == [0, 0]
    with pytest.raises(NoSuchName, match="no queue of topic"):
        await admin.messages.ranges(topic, queue_id=5)
    entries = await admin.messages.queue_entries(
        topic, sent.queue.queue_id, sent.queue_offset, broker=sent.queue.broker_name
    )
    assert entries.queue_data[0].physic_offset == by_id.physical_offset


async def direct_and_tracks(system: System) -> None:
    admin = system.admin
    topic, group = await system.topic("tracked"), unique("billing")
    got: list[bytes] = []

    async def listener(message: ReceivedMessage) -> None:
        got.append(message.body)

    async with system.consumer(group, topic, listener):
        sent = await admin.messages.send(Message(topic=topic, body=b"x", tags="a"))
        message = await admin.messages.by_id(sent.offset_id)

        async def is_consumed() -> bool:
            return [one.track_type for one in await admin.messages.tracks(message)] == [
                TrackType.CONSUMED
            ]

        await eventually(is_consumed, "its position is committed")
        [member] = (await admin.connections.consumers(group)).connection_set
        count = len(got)
        result = await admin.messages.consume_directly(message, group, member.client_id)
        assert result.consume_result is ConsumeResult.CR_SUCCESS
        assert len(got) == count + 1

    async def is_offline() -> bool:
        [track] = await admin.messages.tracks(message)
        return track.track_type is TrackType.NOT_ONLINE

    await eventually(is_offline, "the group is known to be offline")


async def dead_letters(system: System) -> None:
    admin = system.admin
    topic, group, other = await system.topic("dead"), unique("billing"), unique("audit")
    is_repaired = False
    got: dict[str, list[str]] = {group: [], other: []}

    async def failing(message: ReceivedMessage) -> Outcome | None:
        if not is_repaired:
            return Outcome.to_dlq()
        got[group].append(message.message_id)
        assert message.topic == topic
        return None

    async def working(message: ReceivedMessage) -> None:
        got[other].append(message.message_id)

    assert await admin.dead_letters.count(group) == 0
    async with system.consumer(group, topic, failing), system.consumer(other, topic, working):
        sent = await admin.messages.send(Message(topic=topic, body=b"17", keys=["order-17"]))

        async def is_dead() -> bool:
            return await admin.dead_letters.count(group) == 1

        await eventually(is_dead, "it is a dead letter")
        [letter] = [one async for one in admin.dead_letters.scan(group)]
        assert (letter.origin_topic, letter.message_id) == (topic, sent.message_id)
        is_repaired = True
        resent = await admin.dead_letters.resend(group, [letter])
        assert resent.is_complete
        assert len(resent.done) == 1
        await eventually(lambda: got[group] == [sent.message_id], "its group gets it again")
    assert got[other] == [sent.message_id], "and no other does"


async def traces(system: System) -> None:
    admin = system.admin
    topic, trace_topic = await system.topic("traced"), await system.topic("traces", queues=1)
    trace = TraceConfig(is_trace_on=True, trace_topic=trace_topic, flush_interval_ms=20)
    config = ProducerConfig(trace=trace)
    async with Producer(unique("s"), name_servers=system.name_servers, config=config) as producer:
        sent = await producer.send(Message(topic=topic, body=b"x"))

    async def is_there() -> bool:
        return bool((await admin.traces.of_message(sent.message_id, topic=trace_topic)).rows)

    await eventually(is_there, "the trace is indexed")
    told = await admin.traces.of_message(sent.message_id, topic=trace_topic)
    [row] = told.rows
    assert isinstance(row.record, PubTrace)
    assert row.record.topic == topic
    assert told.consumptions == []


async def replication(system: System) -> None:
    told = await system.admin.replication.status()
    if system.is_rocketmq_4:
        assert all(isinstance(error, RequestCodeNotSupported) for error in told.failed.values())
        assert not told.done
    else:
        assert all(status.master for status in told.raise_failed().values())


async def transfer(system: System) -> None:
    """Export, delete, import."""
    admin = system.admin
    topic, group = await system.topic("moved", queues=3), unique("billing")
    await admin.groups.create(new_group(group, retries=5))
    every = await admin.definitions.read()
    text = every.text()
    mine = Definitions.parse(text)
    mine.topics = [one for one in mine.topics if one.topic_name == topic]
    mine.groups = [one for one in mine.groups if one.group_name == group]
    assert (mine.topics[0].write_queue_nums, mine.topics[0].brokers) == (3, None)
    assert mine.groups[0].retry_max_times == 5
    assert (await admin.definitions.plan(mine)).rows == []
    await admin.topics.delete(topic)
    mine.groups[0].retry_max_times = 6
    planned = await admin.definitions.plan(mine)
    assert [(one.kind, one.step) for one in planned] == [
        ("topic", Step.CREATE),
        ("group", Step.CHANGE),
    ] * 2
    assert "retryMaxTimes: 5" in planned.rows[1].was
    done = await admin.definitions.write(mine)
    assert done.is_complete
    assert (len(done.done), done.left) == (4, [])
    assert (await admin.definitions.plan(mine)).rows == []
    assert set((await admin.topics.get(topic)).by_broker) == {
        place.broker_name for place in await admin.brokers.places()
    }


async def a_queue_that_is_not_there(system: System) -> None:
    nowhere = MessageQueue("nobody", 0, await system.topic("none"))
    with pytest.raises(NoSuchName, match="at broker 'nobody'"):
        await system.admin.offsets.commit("billing", {nowhere: 1})


STEPS = (
    servers,
    names_that_do_not_exist,
    key_values,
    write_permission,
    topics,
    groups,
    consuming,
    resets_online,
    resets_offline,
    messages,
    direct_and_tracks,
    dead_letters,
    traces,
    replication,
    transfer,
    a_queue_that_is_not_there,
)


def run_step(step: Callable[[System], Awaitable[None]], name_servers: str, **facts: object) -> None:
    async def main() -> None:
        async with Admin(name_servers, timeout=10) as admin:
            cluster = (await admin.clusters.all())[0].name
            await step(System(admin, name_servers, cluster, **facts))  # type: ignore[arg-type]

    asyncio.run(main())
