"""The blocking clients against real servers of either make."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Any

import pytest
from tests.eventually import wait_until

from cometmq.base.errors import TooManyInFlight, UsageError
from cometmq.client import (
    ClientClosed,
    LitePullConfig,
    Message,
    MessageQueue,
    Outcome,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
    SendStatus,
)
from cometmq.client.sync import (
    LitePullConsumer,
    Producer,
    PullConsumer,
    PullSchedule,
    PullStatus,
    PushConsumer,
    TransactionProducer,
    TransactionState,
    Turn,
    reply_to,
)

CreateTopic = Callable[..., str]
Unique = Callable[[str], str]
SECONDS_MAX = 30.0
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"


def push_config(**settings: Any) -> PushConsumerConfig:
    return PushConsumerConfig(consume_from_where=FROM_FIRST, rebalance_interval_ms=1000, **settings)


def lite_config(**settings: Any) -> LitePullConfig:
    return LitePullConfig(consume_from_where=FROM_FIRST, rebalance_interval_ms=1000, **settings)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    wait_until(
        lambda: (
            not [
                thread.name
                for thread in threading.enumerate()
                if thread.name.startswith("cometmq-cli")
            ]
        )
    )


def test_what_is_sent_can_be_pulled_and_found(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("sync", queues=2)
    with (
        Producer(unique("pg"), name_servers=name_servers) as producer,
        PullConsumer(unique("cg"), name_servers=name_servers) as consumer,
    ):
        assert len(producer.fetch_publish_queues(topic)) == 2
        sent = producer.send(Message(topic=topic, body=b"one", tags="a", keys=["k-1"]))
        assert sent.status is SendStatus.SEND_OK
        results = producer.send_all(Message(topic=topic, body=b"%d" % n) for n in range(10))
        assert results
        producer.send_oneway(Message(topic=topic, body=b"away"), queue=sent.queue)
        wait_until(lambda: sum(map(consumer.max_offset, consumer.queues(topic))) == 12)
        [got] = consumer.pull(sent.queue, sent.queue_offset, "a", count_max=1).messages
        assert (got.body, got.tags, got.message_id) == (b"one", "a", sent.message_id)
        assert consumer.view(sent.offset_id).body == b"one"
        wait_until(lambda: consumer.query(topic, "k-1"))
        assert producer.view(sent.message_id, topic=topic).keys == ["k-1"]
        assert consumer.min_offset(sent.queue) == 0
        assert consumer.offset_by_time(sent.queue, 0) == 0
        assert consumer.earliest_time(sent.queue) is not None
        end = consumer.max_offset(sent.queue)
        assert consumer.pull(sent.queue, end).status is PullStatus.NO_NEW_MSG
        consumer.commit(sent.queue, end)
        wait_until(lambda: consumer.committed(sent.queue) == end)


def test_futures_of_sends_arrive_in_any_thread_and_are_bounded(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("soon")
    config = ProducerConfig(in_flight_max=50)
    with Producer(unique("pg"), name_servers=name_servers, config=config) as producer:
        futures: list[Future[Any]] = []
        refused = 0
        while len(futures) < 300:
            try:
                futures.append(producer.send_soon(Message(topic=topic, body=b"x")))
            except TooManyInFlight:
                refused += 1
                futures[-1].result(SECONDS_MAX)
        assert refused
        assert {future.result(SECONDS_MAX).status for future in futures} == {SendStatus.SEND_OK}
        bad = producer.send_soon(Message(topic="no topic", body=b"x"))
        with pytest.raises(UsageError):
            bad.result(SECONDS_MAX)
        last = producer.send_soon(Message(topic=topic, body=b"x"))
    # Close waits for what is under way.
    assert last.result(0).status is SendStatus.SEND_OK

    async def in_a_loop() -> SendStatus:
        return (await asyncio.wrap_future(again.send_soon(message))).status

    message = Message(topic=topic, body=b"x")
    with Producer(unique("pg"), name_servers=name_servers) as again:
        assert asyncio.run(in_a_loop()) is SendStatus.SEND_OK


def test_threads_share_a_producer(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("threads")
    ids: list[str] = []

    def work() -> None:
        message = Message(topic=topic, body=b"x")
        ids.extend(producer.send(message).message_id for _ in range(50))

    with Producer(unique("pg"), name_servers=name_servers) as producer:
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(ids)) == 300


def test_a_client_is_started_and_closed_again_and_again(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("again")
    got: list[bytes] = []
    producer = Producer(unique("pg"), name_servers=name_servers)
    consumer = PushConsumer(
        unique("cg"),
        listener=lambda message: got.append(message.body),
        name_servers=name_servers,
        config=push_config(),
    )
    consumer.subscribe(topic)
    for number in range(2):
        consumer.start()
        with producer:
            producer.start()
            producer.send(Message(topic=topic, body=b"%d" % number))
        wait_until(lambda: len(got) > number)  # noqa: B023 - called at once
        consumer.suspend()
        consumer.resume()
        consumer.close()
    with pytest.raises(ClientClosed):
        producer.send(Message(topic=topic, body=b"x"))
    assert sorted(got) == [b"0", b"1"]


def test_listeners_run_in_threads_and_may_send(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, answers = create_topic("in"), create_topic("out")
    threads: set[str] = set()
    failed: list[bytes] = []

    def listener(message: ReceivedMessage) -> Outcome | None:
        threads.add(threading.current_thread().name)
        if message.body == b"3" and not failed:
            failed.append(message.body)
            return Outcome.later(1)
        producer.send(Message(topic=answers, body=message.body))
        return None

    with (
        Producer(unique("pg"), name_servers=name_servers) as producer,
        PushConsumer(
            unique("cg"), listener=listener, name_servers=name_servers, config=push_config()
        ) as consumer,
        LitePullConsumer(unique("lg"), name_servers=name_servers, config=lite_config()) as reader,
    ):
        consumer.subscribe(topic)
        assert consumer.client_id
        for number in range(6):
            producer.send(Message(topic=topic, body=b"%d" % number))
        reader.subscribe(answers)
        bodies = [message.body for message in islice(reader, 6)]
        assert sorted(bodies) == [b"%d" % number for number in range(6)]
        assert {queue.topic for queue in consumer.queues} >= {topic}
    assert threads
    assert not any("loop" in name or name == "MainThread" for name in threads)


def test_a_question_gets_its_answer(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("questions")

    def answer_it(message: ReceivedMessage) -> None:
        answering.send(reply_to(message, b"42"))

    with (
        Producer(unique("pg"), name_servers=name_servers) as producer,
        Producer(unique("ag"), name_servers=name_servers) as answering,
        PushConsumer(
            unique("cg"), listener=answer_it, name_servers=name_servers, config=push_config()
        ) as consumer,
    ):
        consumer.subscribe(topic)
        wait_until(lambda: consumer.queues)
        answer = producer.request(Message(topic=topic, body=b"6 * 7"), timeout=SECONDS_MAX)
        assert answer.body == b"42"


def test_a_transaction_is_carried_out_by_the_thread_that_sends(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("transactions")
    executed_by: list[int] = []

    def execute(message: Message, argument: TransactionState) -> TransactionState:
        executed_by.append(threading.get_ident())
        producer.fetch_publish_queues(topic)
        if message.body == b"broken":
            raise StopIteration
        return argument

    def check(message: ReceivedMessage) -> TransactionState:
        checked.append(message.body)
        return TransactionState.COMMIT

    checked: list[bytes] = []
    with (
        TransactionProducer(
            unique("pg"), execute=execute, check=check, name_servers=name_servers
        ) as producer,
        LitePullConsumer(unique("cg"), name_servers=name_servers, config=lite_config()) as reader,
    ):
        reader.subscribe(topic)
        committed = producer.send_transaction(
            Message(topic=topic, body=b"kept"), TransactionState.COMMIT
        )
        producer.send_transaction(Message(topic=topic, body=b"gone"), TransactionState.ROLLBACK)
        broken = producer.send_transaction(Message(topic=topic, body=b"broken"))
        assert (committed.state, committed.error) == (TransactionState.COMMIT, None)
        assert broken.state is TransactionState.UNKNOWN
        assert isinstance(broken.error, RuntimeError)
        assert executed_by == [threading.get_ident()] * 3
        bodies = {message.body for message in islice(reader, 2)}
        # The broker asked about the one that nobody could tell about.
        assert bodies == {b"kept", b"broken"}
        assert checked == [b"broken"]


def test_polling_marks_what_is_done_and_an_error_leaves_it(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic("lite", queues=1), unique("cg")
    with Producer(unique("pg"), name_servers=name_servers) as producer:
        for number in range(20):
            producer.send(Message(topic=topic, body=b"%d" % number))

    def break_off() -> None:
        with LitePullConsumer(group, name_servers=name_servers, config=lite_config()) as consumer:
            consumer.subscribe(topic)
            for number, message in enumerate(consumer):
                assert message.body == b"%d" % number
                if number == 5:
                    raise KeyError

    with pytest.raises(KeyError):
        break_off()
    with LitePullConsumer(group, name_servers=name_servers, config=lite_config()) as consumer:
        [queue] = consumer.queues(topic)
        assert consumer.committed(queue) == 5
        consumer.subscribe(topic)
        wait_until(consumer.assignment)
        assert consumer.poll(SECONDS_MAX)[0].body == b"5"
        consumer.seek(queue, 18)
        assert [message.body for message in consumer.poll(SECONDS_MAX)] == [b"18", b"19"]
        consumer.seek_to_begin(queue)
        wait_until(lambda: consumer.position(queue) == 0)
        consumer.pause([queue])
        assert consumer.poll(0.1) == []
        consumer.resume([queue])
        assert consumer.poll(SECONDS_MAX)[0].body == b"0"
        consumer.seek_to_end(queue)
        consumer.commit()
        assert consumer.committed(queue) == 20


def test_iteration_ends_when_another_thread_closes_the_consumer(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("closing")
    consumer = LitePullConsumer(unique("cg"), name_servers=name_servers, config=lite_config())
    consumer.subscribe(topic)
    consumer.start()
    ended = threading.Event()

    def read() -> None:
        for _ in consumer:
            pass
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    consumer.close()
    thread.join(SECONDS_MAX)
    assert ended.is_set()


def test_a_schedule_calls_for_each_queue_in_threads(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("schedule", queues=3)
    seen: dict[MessageQueue, int] = {}
    shares: list[int] = []
    refused: list[UsageError] = []

    def read(queue: MessageQueue, turn: Turn) -> None:
        offset = seen.get(queue, 0)
        seen[queue] = turn.consumer.pull(queue, offset).next_offset
        turn.next_seconds = 0.05
        if not refused:
            try:
                schedule.close()
            except UsageError as error:
                refused.append(error)

    with (
        Producer(unique("pg"), name_servers=name_servers) as producer,
        PullConsumer(unique("cg"), name_servers=name_servers) as consumer,
    ):
        other = create_topic("watched", queues=2)
        consumer.on_queues_changed(
            other, lambda name, queues, mine: shares.append(len(consumer.queues(name)))
        )
        for queue in producer.fetch_publish_queues(topic):
            producer.send(Message(topic=topic, body=b"x"), queue=queue)
        schedule = PullSchedule(consumer)
        schedule.add(topic, read)
        with schedule:
            wait_until(lambda: sorted(seen.values()) == [1, 1, 1])
            assert len(schedule.queues) == 3
        wait_until(lambda: shares[:1] == [2])
        assert consumer.queues_in_balance(topic) == sorted(seen)
    assert refused


def test_where_an_event_loop_runs_the_other_door_is_named(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("mistake")
    raised: list[BaseException | None] = []

    class Hook:
        def before(self, context: Any) -> None:
            try:
                producer.send(Message(topic=topic, body=b"from a hook"))
            except UsageError as error:
                raised.append(error)

        def after(self, context: Any) -> None: ...

    async def send() -> None:
        producer.send(Message(topic=topic, body=b"x"))

    with Producer(unique("pg"), name_servers=name_servers) as producer:
        with pytest.raises(UsageError, match=r"cometmq\.client\.aio"):
            asyncio.run(send())
        producer.add_send_hook(Hook())
        producer.send(Message(topic=topic, body=b"x"))
    assert "own event loop" in str(raised[0])
