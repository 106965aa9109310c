"""Trace hooks and the dispatcher behind them, without servers."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.errors import ConfigError, ConnectFailed
from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.aio.trace.send_hooks import SendContext, TransactionEnd
from cometmq.client.aio.trace.trace_dispatcher import BODY_BYTES_MAX, TraceDispatcher, batches
from cometmq.client.aio.trace.trace_hooks import (
    ConsumeTrace,
    SendTrace,
    TransactionTrace,
    make_dispatcher,
)
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.consume.outcome import BadOutcome
from cometmq.client.core.send.send_result import SendResult, SendStatus
from cometmq.client.core.send.send_retry import SendMode
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.trace_config import TraceConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.trace import (
    ConsumeCode,
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    TraceMessageType,
    TraceRecord,
    decode_traces,
)
from cometmq.testing.fake_clock import FakeClock

QUEUE = MessageQueue(broker_name="b", queue_id=1, topic="T")
TRACE = "RMQ_SYS_TRACE_TOPIC"


def _result(**changes: Any) -> SendResult:
    values: dict[str, Any] = {
        "status": SendStatus.SEND_OK,
        "message_id": "M1",
        "offset_id": "O1",
        "queue": QUEUE,
        "queue_offset": 0,
        "region_id": "here",
    }
    return SendResult(**(values | changes))


def _sent(
    *messages: Message, result: SendResult | None = None, message_id: str = "M1"
) -> list[TraceRecord]:
    records: list[TraceRecord] = []
    clock = FakeClock()
    hook = SendTrace(records.append, TRACE, clock.wall_ms)
    context = SendContext(
        group="g",
        messages=messages or (Message(topic="T", body=b"abc", keys=["k1", "k2"]),),
        message_id=message_id,
        queue=QUEUE,
        address="10.0.0.1:10911",
        mode=SendMode.WAITING,
    )
    hook.before(context)
    clock.advance(1)
    context.result = result or _result()
    context.elapsed_ms = 12.4
    hook.after(context)
    return records


def test_an_answered_send_is_written_down() -> None:
    assert _sent() == [
        PubTrace(
            timestamp=FakeClock().wall_ms(),
            region_id="here",
            group="g",
            topic="T",
            message_id="M1",
            tags=None,
            keys="k1 k2",
            store_host="10.0.0.1:10911",
            body_bytes=3,
            cost_ms=12,
            message_type=TraceMessageType.NORMAL,
            offset_id="O1",
            is_success=True,
        )
    ]


def test_a_broker_that_wants_no_trace_gets_none() -> None:
    assert _sent(result=_result(is_traced=False)) == []
    assert _sent(result=_result(region_id=None)) == []


def test_sends_to_the_trace_topic_leave_no_trace() -> None:
    assert _sent(Message(topic=TRACE, body=b"x")) == []


def test_each_message_of_a_batch_is_found_by_its_own_id() -> None:
    messages = [Message(topic="T", body=b"a"), Message(topic="T", body=b"bb")]
    records = _sent(*messages, result=_result(offset_id="O1,O2"), message_id="M1,M2")
    assert [
        (record.message_id, record.offset_id, record.body_bytes, record.cost_ms)
        for record in records
        if isinstance(record, PubTrace)
    ] == [("M1", "O1", 1, 6), ("M2", "O2", 2, 6)]


def test_the_kind_of_message_and_the_store_status_are_told() -> None:
    half = Message(topic="T", body=b"x", internal_properties={"TRAN_MSG": "true"})
    for message, kind in [
        (half, TraceMessageType.TRANSACTION_HALF),
        (Message(topic="T", body=b"x", delay_level=3), TraceMessageType.DELAY),
        (Message(topic="T", body=b"x", sharding_key="s"), TraceMessageType.NORMAL),
    ]:
        [record] = _sent(message, result=_result(status=SendStatus.FLUSH_DISK_TIMEOUT))
        assert isinstance(record, PubTrace)
        assert (record.message_type, record.is_success) == (kind, False)


def _received(number: int, **properties: str) -> ReceivedMessage:
    return ReceivedMessage(
        topic="T",
        body=b"x",
        properties={"UNIQ_KEY": f"M{number}", "KEYS": "k", "MSG_REGION": "r", **properties},
        reconsume_times=2,
    )


def _consumed(
    messages: list[ReceivedMessage], consumed: int, error: Exception | None = None
) -> list[TraceRecord]:
    records: list[TraceRecord] = []
    clock = FakeClock()
    hook = ConsumeTrace(records.append, TRACE, clock.wall_ms)
    context = ConsumeContext(group="g", queue=QUEUE, messages=messages, is_orderly=False)
    hook.before(context)
    context.consumed_count, context.error, context.elapsed_ms = consumed, error, 10.0
    hook.after(context)
    return records


def test_a_delivery_leaves_two_records_with_one_request_id() -> None:
    before, after = _consumed([_received(1)], 1)
    assert isinstance(before, SubBeforeTrace)
    assert isinstance(after, SubAfterTrace)
    assert (before.message_id, before.region_id, before.retry_times, before.keys) == (
        "M1",
        "r",
        2,
        "k",
    )
    assert before.request_id == after.request_id
    assert (after.is_success, after.context_code, after.cost_ms, after.group) == (
        True,
        ConsumeCode.SUCCESS,
        10,
        "g",
    )


def test_a_partly_consumed_batch_says_which() -> None:
    records = _consumed([_received(1), _received(2)], 1)
    assert [
        (record.message_id, record.is_success, record.context_code)
        for record in records
        if isinstance(record, SubAfterTrace)
    ] == [("M1", True, ConsumeCode.SUCCESS), ("M2", False, ConsumeCode.FAILED)]


@pytest.mark.parametrize(
    ("error", "code"),
    [(ValueError("x"), ConsumeCode.EXCEPTION), (BadOutcome("x"), ConsumeCode.RETURN_NULL)],
)
def test_errors_have_codes_of_their_own(error: Exception, code: ConsumeCode) -> None:
    _, after = _consumed([_received(1)], 0, error)
    assert isinstance(after, SubAfterTrace)
    assert after.context_code is code


def test_messages_that_must_not_be_traced_are_not() -> None:
    records = _consumed([_received(1, TRACE_ON="false"), _received(2, TRACE_ON="true")], 2)
    assert {record.message_id for record in records} == {"M2"}


def test_the_outcome_of_a_transaction_is_told_in_rocketmqs_words() -> None:
    records: list[TraceRecord] = []
    hook = TransactionTrace(records.append, FakeClock().wall_ms)
    for state in ("COMMIT", "ROLLBACK", "UNKNOWN"):
        hook(
            TransactionEnd(
                group="g",
                message=Message(topic="T", body=b"x"),
                message_id="M1",
                transaction_id="M1",
                address="10.0.0.1:10911",
                state=state,
                is_from_check=False,
            )
        )
    assert [record.state for record in records if isinstance(record, EndTransactionTrace)] == [
        "COMMIT_MESSAGE",
        "ROLLBACK_MESSAGE",
        "UNKNOW",
    ]


class FakeProducer:
    """Keeps what it is given; ``block`` holds sends up, ``failures`` makes the next ones fail."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.failures = 0
        self.start_failures = 0
        self.block = asyncio.Event()
        self.block.set()
        self.is_open = False
        self.config: ProducerConfig | None = None
        self.group = ""

    def __call__(self, group: str, *, config: ProducerConfig) -> FakeProducer:
        self.group, self.config = group, config
        return self

    async def start(self) -> None:
        if self.start_failures:
            self.start_failures -= 1
            raise ConnectFailed("nobody there")
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def send(self, message: Message) -> SendResult:
        await self.block.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectFailed("nobody there")
        self.messages.append(message)
        return _result()

    @property
    def ids(self) -> list[str]:
        return [
            record.message_id
            for message in self.messages
            for record in decode_traces(message.body.decode())
        ]


def _record(number: int, keys: str = "k") -> TraceRecord:
    return SubBeforeTrace(
        timestamp=1,
        region_id="r",
        group="g",
        request_id="q",
        message_id=f"M{number}",
        retry_times=0,
        keys=keys,
    )


def _dispatcher(producer: FakeProducer, **settings: Any) -> TraceDispatcher:
    config = TraceConfig(**({"is_trace_on": True, "flush_interval_ms": 5} | settings))
    made = make_dispatcher("g", "PRODUCE", config, ClientConfig(namespace="ns"), producer)
    assert made is not None
    return made


def test_nothing_is_made_when_it_is_off() -> None:
    assert make_dispatcher("g", "PRODUCE", TraceConfig(), ClientConfig(), FakeProducer()) is None


def test_a_topic_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="traceTopic"):
        TraceConfig(trace_topic="a b")


async def test_records_travel_together_and_are_found_by_ids_and_keys() -> None:
    producer = FakeProducer()
    dispatcher = _dispatcher(producer, batch_max=2, flush_interval_ms=60_000)
    dispatcher.start()
    for number in range(5):
        dispatcher.append(_record(number, "a b"))
    await eventually(lambda: len(producer.messages) >= 2)
    await dispatcher.close()
    assert producer.ids == ["M0", "M1", "M2", "M3", "M4"]
    assert producer.messages[0].topic == TRACE
    assert list(producer.messages[0].keys) == ["M0", "a", "b", "M1"]
    assert (dispatcher.sent, dispatcher.dropped) == (5, 0)
    assert not producer.is_open
    # The inner producer is not traced, and its group tells whose it is.
    assert producer.config is not None
    assert not producer.config.trace.is_trace_on
    assert producer.config.client.namespace == ""
    assert producer.group.startswith("_INNER_TRACE_PRODUCER-g-PRODUCE-")


async def test_a_client_with_a_name_shares_it_with_nobody() -> None:
    names: set[str] = set()
    groups: set[str] = set()

    for _ in range(2):
        producer = FakeProducer()
        client = ClientConfig(instance_name="worker")
        config = TraceConfig(is_trace_on=True)
        dispatcher = make_dispatcher("g" * 255, "CONSUME", config, client, producer)
        assert dispatcher is not None
        dispatcher.start()
        await dispatcher.close()
        assert producer.config is not None
        names.add(producer.config.client.instance_name)
        groups.add(producer.group)
    assert len(names) == len(groups) == 2
    assert all(name.startswith("worker-trace-") for name in names)
    assert all(len(group) == 255 and "-CONSUME-" in group for group in groups)


async def test_a_lone_record_leaves_after_the_interval() -> None:
    producer = FakeProducer()
    dispatcher = _dispatcher(producer)
    dispatcher.start()
    dispatcher.append(_record(1))
    await eventually(lambda: producer.ids == ["M1"])
    await dispatcher.close()


async def test_a_full_queue_drops_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cometmq.client"):
        producer = FakeProducer()
        dispatcher = _dispatcher(producer, queue_max=3)
        for number in range(10):
            dispatcher.append(_record(number))
        dispatcher.start()
        await dispatcher.close()
        assert producer.ids == ["M0", "M1", "M2"]
        assert dispatcher.dropped == 7
    assert "trace records dropped" in caplog.text
    assert "count=7" in caplog.text


async def test_a_failed_send_loses_its_records_and_no_others() -> None:
    producer = FakeProducer()
    producer.failures = 1
    dispatcher = _dispatcher(producer, batch_max=1)
    dispatcher.start()
    dispatcher.append(_record(1))
    dispatcher.append(_record(2))
    await dispatcher.close()
    assert producer.ids == ["M2"]
    assert (dispatcher.sent, dispatcher.dropped) == (1, 1)


async def test_a_producer_that_cannot_start_is_tried_again() -> None:
    producer = FakeProducer()
    producer.start_failures = 2
    dispatcher = _dispatcher(producer)
    dispatcher.start()
    dispatcher.append(_record(1))
    await eventually(lambda: producer.ids == ["M1"])
    await dispatcher.close()


async def test_close_does_not_wait_for_a_dead_broker_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cometmq.client.aio.trace.trace_dispatcher.CLOSE_SECONDS_MAX", 0.02)

    producer = FakeProducer()
    producer.block.clear()
    dispatcher = _dispatcher(producer, batch_max=1)
    dispatcher.start()
    dispatcher.append(_record(1))
    dispatcher.append(_record(2))
    async with asyncio.timeout(5):
        await dispatcher.close()
    assert not producer.is_open
    assert dispatcher.dropped >= 1


async def test_other_threads_may_append() -> None:
    producer = FakeProducer()
    dispatcher = _dispatcher(producer, batch_max=4)
    dispatcher.start()
    await asyncio.gather(
        *(asyncio.to_thread(dispatcher.append, _record(number)) for number in range(50))
    )
    await dispatcher.close()
    assert sorted(producer.ids) == sorted(f"M{number}" for number in range(50))


def test_what_cannot_be_written_is_left_out_and_bodies_stay_small() -> None:
    long = _record(1, "k" * (BODY_BYTES_MAX - 200))
    found = batches([_record(0, "a\x01b"), long, _record(2, "x" * 400), _record(3, "\ud800")])
    assert [[record.message_id for record in records] for records, _ in found] == [["M1"], ["M2"]]
    assert all(len(body) <= BODY_BYTES_MAX for _, body in found)
