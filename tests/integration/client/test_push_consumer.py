"""A push consumer on real servers: delivery, retries, dead letters, positions, what operators ask of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import BrokerControl, CreateTopic
from tests.integration.client.consuming import (
    Taken,
    committed,
    config,
    consuming,
    numbered,
    queues_of,
    send,
)

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.consume.outcome import Outcome
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import dlq_topic, retry_topic
from cometmq.model.subscription import Sql
from cometmq.protocol.bodies.offsets import ConsumerStatus
from cometmq.protocol.bodies.running import (
    ConsumeDirectlyResult,
    ConsumeResult,
    ConsumerRunningInfo,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

pytestmark = pytest.mark.timeout(180)

Unique = Callable[[str], str]


@pytest.mark.parametrize("kind", ["async", "def", "async-batch", "def-batch"])
async def test_every_message_is_delivered_once_and_its_positioncommitted(
    name_servers: str, create_topic: CreateTopic, unique: Unique, kind: str
) -> None:
    topic, group = create_topic(), unique("group")
    taken = Taken()
    batches: list[int] = []

    async def batch(messages: list[ReceivedMessage]) -> None:
        batches.append(len(messages))
        taken.messages += messages

    def batch_in_thread(messages: list[ReceivedMessage]) -> None:
        batches.append(len(messages))
        taken.messages += messages

    listeners: dict[str, dict[str, Any]] = {
        "async": {"listener": taken.listener},
        "def": {"listener": taken.in_thread},
        "async-batch": {"batch_listener": batch},
        "def-batch": {"batch_listener": batch_in_thread},
    }
    await send(name_servers, topic, numbered(200))
    settings = config(consume_batch_max=7)
    async with consuming(group, topic, name_servers, config=settings, **listeners[kind]):
        await eventually(lambda: len(taken.messages) >= 200)
    assert sorted(taken.bodies) == sorted(numbered(200))
    assert all(size <= 7 for size in batches)
    message = taken.messages[0]
    assert message.topic == topic
    assert int(message.properties["MAX_OFFSET"]) <= 200
    assert await committed(name_servers, group, topic) == 200


async def test_a_new_group_starts_at_the_end_unless_told_otherwise(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()
    await send(name_servers, topic, numbered(20))
    taken = Taken()
    settings = config(consume_from_where="CONSUME_FROM_LAST_OFFSET")
    async with consuming(
        unique("group"), topic, name_servers, listener=taken.listener, config=settings
    ) as consumer:
        await eventually(lambda: len(queues_of(consumer, topic)) == 4)
        await send(name_servers, topic, [b"new"])
        await eventually(lambda: taken.messages)
    assert taken.bodies == [b"new"]


async def test_a_group_can_start_at_a_time(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)
    await send(name_servers, topic, [b"old-1", b"old-2"])
    # Times of a start have whole seconds.
    border = int(time.time()) + 2
    await asyncio.sleep(max(0.0, border - time.time()) + 0.3)
    await send(name_servers, topic, [b"new-1", b"new-2"])
    taken = Taken()
    settings = config(
        consume_from_where="CONSUME_FROM_TIMESTAMP",
        consume_timestamp=time.strftime("%Y%m%d%H%M%S", time.localtime(border)),
    )
    async with consuming(
        unique("group"), topic, name_servers, listener=taken.listener, config=settings
    ):
        await eventually(lambda: b"new-2" in taken.bodies)
    # RocketMQ 4.9 starts at the message stored nearest to the time, which may be the last one before it.
    assert taken.bodies[-2:] == [b"new-1", b"new-2"]
    assert b"old-1" not in taken.bodies


async def test_tags_and_conditions_choose_messages(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()
    async with Producer("sender", name_servers=name_servers) as producer:
        # "Aa" and "BB" have the same hash, by which brokers choose.
        for tag, amount in (("Aa", "1"), ("BB", "7"), ("C", "9"), ("D", "3")):
            message = Message(
                topic=topic, body=tag.encode(), tags=tag, properties={"amount": amount}
            )
            await producer.send(message)
    tagged, chosen = Taken(), Taken()
    async with (
        consuming(unique("tags"), topic, name_servers, "Aa || C", listener=tagged.listener),
        consuming(unique("sql"), topic, name_servers, Sql("amount > 5"), listener=chosen.listener),
    ):
        await eventually(lambda: len(tagged.messages) >= 2 and len(chosen.messages) >= 2)
        await asyncio.sleep(0.3)
    assert sorted(tagged.bodies) == [b"Aa", b"C"]
    assert sorted(chosen.bodies) == [b"BB", b"C"]


async def test_a_condition_that_no_broker_understands_is_refused_at_the_start(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()
    consumer = PushConsumer(unique("group"), listener=Taken().listener, name_servers=name_servers)
    consumer.subscribe(topic, Sql("a >"))
    with pytest.raises(Exception, match="answered 23"):
        await consumer.start()
    await consumer.close()


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("failure", ["exception", "later", "nonsense"])
async def test_a_failed_message_comes_again_with_its_own_topic(
    name_servers: str, create_topic: CreateTopic, unique: Unique, failure: str, is_async: bool
) -> None:
    topic, group = create_topic(), unique("group")

    def fail_first(message: ReceivedMessage) -> object:
        if message.reconsume_times:
            return None
        if failure == "exception":
            raise RuntimeError("not today")
        return Outcome.later(delay_level=1) if failure == "later" else "CONSUME_SUCCESS"

    taken = Taken(fail_first)
    listener = taken.listener if is_async else taken.in_thread
    async with consuming(group, topic, name_servers, listener=listener) as consumer:
        # The group's retry topic is new, too.
        await eventually(lambda: queues_of(consumer, retry_topic(group)))
        await send(name_servers, topic, [b"x"], keys=["k"])
        await eventually(lambda: len(taken.messages) == 2)
    first, second = taken.messages
    assert (first.topic, second.topic) == (topic, topic)
    assert second.reconsume_times == 1
    assert second.message_id == first.message_id
    assert second.keys == ["k"]
    assert await committed(name_servers, group, topic) == 1


@pytest.mark.parametrize("way", ["to_dlq", "no retries", "retries used up"])
async def test_dead_letters(
    name_servers: str, create_topic: CreateTopic, unique: Unique, way: str
) -> None:
    topic, group = create_topic(), unique("group")

    def fail(message: ReceivedMessage) -> Outcome:
        return Outcome.to_dlq() if way == "to_dlq" else Outcome.later()

    taken = Taken(fail)
    settings = config(max_reconsume_times={"no retries": 0, "retries used up": 2}.get(way, -1))
    async with consuming(
        group, topic, name_servers, listener=taken.listener, config=settings
    ) as consumer:
        await eventually(lambda: queues_of(consumer, retry_topic(group)))
        await send(name_servers, topic, [b"dead"])
        letters = await _dead_letters(name_servers, group)
    assert [letter.body for letter in letters] == [b"dead"]
    assert letters[0].properties["RETRY_TOPIC"] == topic
    assert len(taken.messages) == (3 if way == "retries used up" else 1)


async def test_of_a_batch_only_what_was_not_consumed_comes_again(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await send(name_servers, topic, numbered(4))
    batches: list[list[bytes]] = []

    async def listener(messages: list[ReceivedMessage]) -> Outcome | None:
        batches.append([message.body for message in messages])
        return Outcome.consumed_through(1) if len(messages) == 4 else None

    async with consuming(
        group,
        topic,
        name_servers,
        batch_listener=listener,
        config=config(consume_batch_max=10),
    ):
        await eventually(lambda: sum(map(len, batches)) == 6)
    assert batches[0] == numbered(4)
    assert sorted(body for batch in batches[1:] for body in batch) == [b"2", b"3"]


async def test_without_the_broker_a_failed_message_stays_and_is_tried_again(
    name_servers: str,
    create_topic: CreateTopic,
    unique: Unique,
    broker_control: BrokerControl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cometmq.client.core.consume.member.held_queue.RESUBMIT_SECONDS", 0.5)
    monkeypatch.setattr("cometmq.client.aio.push.send_back.SEND_BACK_SECONDS", 1.0)

    topic, group = create_topic(), unique("group")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(message: ReceivedMessage) -> None:
        if not message.reconsume_times:
            begun.set()
            await go_on.wait()
            raise RuntimeError("not today")

    taken = Taken(act)
    async with consuming(group, topic, name_servers, listener=taken.listener):
        await send(name_servers, topic, [b"x"])
        await begun.wait()
        await asyncio.to_thread(broker_control.kill)
        go_on.set()
        await eventually(lambda: len(taken.messages) == 2)
        assert taken.messages[1].reconsume_times == 1
        await asyncio.to_thread(broker_control.start)
        await send(name_servers, topic, [b"y"])
        await eventually(lambda: b"y" in taken.bodies, seconds=60)


async def test_listeners_run_side_by_side_up_to_their_number(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()
    await send(name_servers, topic, numbered(12))
    settings = config(consume_thread_max=3)
    now, most, lock = 0, 0, threading.Lock()

    async def wait(message: ReceivedMessage) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.05)
        now -= 1

    def wait_in_thread(message: ReceivedMessage) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1

    for act in (wait, wait_in_thread):
        now = most = 0
        done: list[ReceivedMessage] = []

        async def listener(message: ReceivedMessage, done: Any = done) -> None:
            await wait(message)
            done.append(message)

        def listener_in_thread(message: ReceivedMessage, done: Any = done) -> None:
            wait_in_thread(message)
            done.append(message)

        async with consuming(
            unique("group"),
            topic,
            name_servers,
            listener=listener if act is wait else listener_in_thread,
            config=settings,
        ):
            await eventually(lambda: len(done) == 12)  # noqa: B023 - called at once
        assert most == 3


async def test_a_suspended_consumer_waits_and_goes_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)
    taken = Taken()
    async with consuming(unique("group"), topic, name_servers, listener=taken.listener) as consumer:
        await send(name_servers, topic, [b"1"])
        await eventually(lambda: len(taken.messages) == 1)
        consumer.suspend()
        # A pull that the broker holds still brings what comes next.
        await send(name_servers, topic, [b"2"])
        await eventually(lambda: len(taken.messages) == 2)
        await send(name_servers, topic, [b"3"])
        await asyncio.sleep(0.5)
        assert len(taken.messages) == 2
        consumer.resume()
        await eventually(lambda: len(taken.messages) == 3)


async def test_subscriptions_change_while_it_runs(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    first, second = create_topic("first"), create_topic("second")
    taken = Taken()
    async with consuming(unique("group"), first, name_servers, listener=taken.listener) as consumer:
        consumer.subscribe(second, "wanted")
        await eventually(lambda: len(queues_of(consumer, second)) == 4)
        await send(name_servers, second, [b"no"], tags="other")
        await send(name_servers, second, [b"yes"], tags="wanted")
        await eventually(lambda: taken.messages)
        consumer.subscribe(second, "other")
        consumer.unsubscribe(first)
        await eventually(lambda: not queues_of(consumer, first))
        await send(name_servers, first, [b"unwanted"])

        async def send_until_taken() -> None:
            # The broker hears of the new tag by a heartbeat.
            while b"now" not in taken.bodies:
                await send(name_servers, second, [b"now"], tags="other")
                await asyncio.sleep(0.1)

        await asyncio.wait_for(send_until_taken(), 30)
    assert taken.bodies[0] == b"yes"
    assert b"unwanted" not in taken.bodies
    assert b"no" not in taken.bodies


async def test_limits_hold_pulling_back(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)
    await send(name_servers, topic, numbered(100))
    go_on = asyncio.Event()

    async def wait(message: ReceivedMessage) -> None:
        await go_on.wait()

    taken = Taken(wait)
    settings = config(pull_threshold_for_queue=10, pull_batch_size=4, consume_thread_max=5)
    async with consuming(
        unique("group"), topic, name_servers, listener=taken.listener, config=settings
    ) as consumer:
        await eventually(lambda: len(taken.messages) == 5)
        await asyncio.sleep(0.3)
        (queue,) = queues_of(consumer, topic)
        cached = consumer.running_info().mq_table[queue].cached_msg_count
        assert 10 < cached <= 14
        go_on.set()
        await eventually(lambda: len(taken.messages) == 100)


async def test_an_offset_that_is_not_there_is_corrected(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await send(name_servers, topic, numbered(5))
    async with PullConsumer(group, name_servers=name_servers) as reader:
        # It is a member of the group for a moment; the next one must not wait for it.
        (queue,) = await reader.queues(topic)
        await reader.commit(queue, 1000)
    taken = Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener) as consumer:
        await eventually(lambda: consumer.positions(topic).get(queue) == 5)
        await send(name_servers, topic, [b"next"])
        await eventually(lambda: taken.messages)
    assert taken.bodies == [b"next"]


async def test_closing_waits_for_listeners_and_commits_exactly_what_they_did(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await send(name_servers, topic, numbered(50))
    ended: list[bytes] = []
    begun: list[bytes] = []

    async def slow(message: ReceivedMessage) -> None:
        begun.append(message.body)
        await asyncio.sleep(0.1)
        ended.append(message.body)

    settings = config(consume_thread_max=2)
    async with consuming(group, topic, name_servers, listener=slow, config=settings):
        await eventually(lambda: len(begun) >= 5)
    assert ended == begun
    assert len(ended) < 50
    assert await committed(name_servers, group, topic) == len(ended)
    taken = Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener):
        await eventually(lambda: len(taken.messages) + len(ended) >= 50)
    assert sorted(ended + taken.bodies) == sorted(numbered(50))


async def test_closing_does_not_wait_for_ever(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await send(name_servers, topic, [b"x"])
    begun = asyncio.Event()

    async def endless(message: ReceivedMessage) -> None:
        begun.set()
        await asyncio.Event().wait()

    settings = config(await_termination_ms=200)
    async with consuming(group, topic, name_servers, listener=endless, config=settings):
        await begun.wait()
        started = time.monotonic()
    assert time.monotonic() - started < 5
    assert await committed(name_servers, group, topic) in (0, None)


async def test_a_message_kept_too_long_is_sent_back(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(), unique("group")
    hold = threading.Event()

    def act(message: ReceivedMessage) -> None:
        if not message.reconsume_times:
            hold.wait(30)

    taken = Taken(act)
    async with consuming(group, topic, name_servers, listener=taken.in_thread) as consumer:
        await eventually(lambda: queues_of(consumer, retry_topic(group)))
        await send(name_servers, topic, [b"x"])
        await eventually(lambda: taken.messages)
        assert consumer._parts is not None
        listener: Any = consumer._parts._listener
        await listener.sweep()
        assert not consumer.positions(topic) or sum(consumer.positions(topic).values()) == 0
        listener._timeout = 0.0
        await listener.sweep()
        await eventually(lambda: len(taken.messages) == 2)
        assert sum(consumer.positions(topic).values()) == 1
        hold.set()
    assert [message.reconsume_times for message in taken.messages] == [0, 1]


async def test_operators_reset_offsets_and_read_positions_and_state(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=2), unique("group")
    await send(name_servers, topic, numbered(10))
    taken = Taken()
    settings = config(client={"persist_offsets_millis": 100})
    async with consuming(
        group, topic, name_servers, listener=taken.listener, config=settings
    ) as consumer:
        await eventually(lambda: sum(consumer.positions(topic).values()) == 10)
        async with asyncio.timeout(30):
            # A broker resets no position of a group that has none.
            while await committed(name_servers, group, topic) != 10:
                await asyncio.sleep(0.05)
        async with _operator(name_servers) as ask:
            instance = consumer._instance
            assert instance is not None
            info = ConsumerRunningInfo.decode(
                (
                    await ask(
                        broker_control.address,
                        RequestCode.GET_CONSUMER_RUNNING_INFO,
                        {
                            "consumerGroup": group,
                            "clientId": instance.client_id,
                            "jstackEnable": "true",
                        },
                    )
                ).body
            )
            assert {queue.topic for queue in info.mq_table} >= {topic}
            assert info.properties["PROP_CONSUMEORDERLY"] == "false"
            assert info.status_table[topic].consume_failed_msgs == 0
            assert "run_test" in (info.jstack or "")
            status = ConsumerStatus.decode(
                (
                    await ask(
                        broker_control.address,
                        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
                        {"topic": topic, "group": group},
                    )
                ).body
            )
            positions = status.consumer_table[instance.client_id]
            assert sum(positions.values()) == 10
            await ask(
                broker_control.address,
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
                {"topic": topic, "group": group, "timestamp": "0", "isForce": "true"},
            )
        await eventually(lambda: len(taken.messages) == 20)
    assert set(taken.counts().values()) == {2}


async def test_an_operator_has_one_message_consumed(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    async with Producer("sender", name_servers=name_servers) as producer:
        sent = await producer.send(Message(topic=topic, body=b"x"))

    def act(message: ReceivedMessage) -> object:
        if len(taken.messages) == 3:
            raise RuntimeError("enough")
        return Outcome.later() if len(taken.messages) == 4 else None

    taken = Taken(act)
    async with consuming(group, topic, name_servers, listener=taken.in_thread) as consumer:
        await eventually(lambda: len(taken.messages) == 1)
        instance = consumer._instance
        assert instance is not None
        found = []
        async with _operator(name_servers) as ask:
            for _ in range(3):
                reply = await ask(
                    broker_control.address,
                    RequestCode.CONSUME_MESSAGE_DIRECTLY,
                    {
                        "consumerGroup": group,
                        "clientId": instance.client_id,
                        "msgId": sent.offset_id,
                        "brokerName": broker_control.name,
                    },
                )
                found.append(ConsumeDirectlyResult.decode(reply.body))
    assert [result.consume_result for result in found] == [
        ConsumeResult.CR_SUCCESS,
        ConsumeResult.CR_THROW_EXCEPTION,
        ConsumeResult.CR_LATER,
    ]
    assert "enough" in (found[1].remark or "")


async def test_a_broker_that_comes_back_goes_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(), unique("group")
    taken = Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener):
        await send(name_servers, topic, numbered(10))
        await eventually(lambda: len(taken.messages) == 10)
        await asyncio.to_thread(broker_control.restart)
        await send(name_servers, topic, numbered(10, 10))
        await eventually(lambda: len(taken.counts()) == 20, seconds=60)
    assert await committed(name_servers, group, topic) == 20


async def test_namespaces_keep_names_apart(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    bare = unique("topic")
    wire = create_topic("tenant%" + bare)
    topic = wire.removeprefix("tenant%")
    group = unique("group")

    def fail_first(message: ReceivedMessage) -> Outcome | None:
        return None if message.reconsume_times else Outcome.later(delay_level=1)

    taken = Taken(fail_first)
    settings = config(client={"namespace": "tenant"})
    consumer = PushConsumer(
        group, listener=taken.listener, name_servers=name_servers, config=settings
    )
    consumer.subscribe(topic)
    async with consumer:
        await eventually(lambda: queues_of(consumer, retry_topic("tenant%" + group)))
        await send(name_servers, wire, [b"x"])
        await eventually(lambda: len(taken.messages) == 2)
    assert [message.topic for message in taken.messages] == [topic, topic]


async def test_hooks_see_every_call(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    class Hook:
        def __init__(self) -> None:
            self.seen: list[tuple[bytes, int, bool]] = []

        def before(self, context: Any) -> None:
            context.notes["body"] = context.messages[0].body

        def after(self, context: Any) -> None:
            assert context.elapsed_ms >= 0
            self.seen.append(
                (context.notes["body"], context.consumed_count, context.error is not None)
            )
            raise RuntimeError("a hook's failure is nobody's business")

    topic = create_topic(queues=1)
    await send(name_servers, topic, [b"good", b"bad"])
    hook = Hook()

    def act(message: ReceivedMessage) -> None:
        if message.body == b"bad":
            raise RuntimeError("not today")

    taken = Taken(act)
    consumer = PushConsumer(
        unique("group"), listener=taken.listener, name_servers=name_servers, config=config()
    )
    consumer.hooks.append(hook)
    consumer.subscribe(topic)
    async with consumer:
        await eventually(lambda: len(hook.seen) >= 2)
    assert sorted(hook.seen)[:2] == [(b"bad", 0, True), (b"good", 1, False)]


async def test_misuse_is_refused(name_servers: str, unique: Unique) -> None:
    taken = Taken()
    with pytest.raises(UsageError, match="either a listener or a batch_listener"):
        PushConsumer("g", name_servers=name_servers)
    with pytest.raises(UsageError, match="group"):
        PushConsumer("not a group", listener=taken.listener, name_servers=name_servers)
    consumer = PushConsumer(unique("g"), listener=taken.listener, name_servers=name_servers)
    with pytest.raises(UsageError, match="illegal characters"):
        consumer.subscribe("not a topic")
    async with consumer:
        with pytest.raises(UsageError, match="started already"):
            await consumer.start()
    await consumer.close()


class _operator:
    """Asks a broker as an operator's tool does."""

    def __init__(self, name_servers: str) -> None:
        self._name_servers = name_servers

    async def __aenter__(self) -> Callable[..., Any]:
        self._instance = ClientInstance.acquire(ClientConfig(name_servers=self._name_servers))
        return self._ask

    async def __aexit__(self, *_: object) -> None:
        await self._instance.release()

    async def _ask(self, address: str, code: RequestCode, ext: dict[str, str]) -> Command:
        reply = await self._instance.call(address, Command(code, ext), 10.0)
        assert reply.code == ResponseCode.SUCCESS, (reply.code, reply.remark)
        return reply


async def _dead_letters(name_servers: str, group: str) -> list[ReceivedMessage]:
    topic = dlq_topic(group)
    async with PullConsumer("reader", name_servers=name_servers) as reader:
        async with asyncio.timeout(60):
            while True:
                try:
                    queues = await reader.queues(topic)
                    if any([await reader.max_offset(queue) for queue in queues]):
                        break
                except Exception:  # noqa: BLE001 - the topic is made by the first dead letter
                    pass
                await asyncio.sleep(0.1)
        found: list[ReceivedMessage] = []
        for queue in queues:
            found += (await reader.pull(queue, 0)).messages
        return found
