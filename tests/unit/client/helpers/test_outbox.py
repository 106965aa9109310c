"""What cannot be sent is kept, in order, over restarts, and sent when it can be."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.errors import ConnectFailed, UsageError
from cometmq.client.core.send.send_result import SendResult, SendStatus
from cometmq.client.errors import NoRoute
from cometmq.client.helpers.outbox import Outbox, OutboxFull, OutboxSettings, OutboxTable
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import UNIQ_KEY
from cometmq.testing.fake_clock import FakeClock

QUICK = OutboxSettings(poll_seconds=0.01, pause_seconds=0.01, pause_seconds_max=0.02)


class FakeProducer:
    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.error: Exception | None = None
        self.refuses: set[bytes] = set()
        self.tries = 0

    async def send(self, message: Message) -> SendResult:
        self.tries += 1
        await asyncio.sleep(0)
        if message.body in self.refuses:
            raise UsageError("never")
        if self.error is not None:
            raise self.error
        self.sent.append(message)
        return SendResult(
            status=SendStatus.SEND_OK,
            message_id=message.internal_properties[UNIQ_KEY],
            offset_id="O",
            queue=MessageQueue("b", 0, message.topic),
            queue_offset=0,
        )

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.sent]


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "outbox.db")


def _outbox(producer: FakeProducer, database: str, **options: Any) -> Outbox:
    return Outbox(producer, lambda: sqlite3.connect(database), settings=QUICK, **options)


def _message(number: int) -> Message:
    return Message(topic="T", body=b"%d" % number, keys=["k"])


async def test_a_send_that_succeeds_leaves_nothing_behind(database: str) -> None:
    producer = FakeProducer()
    async with _outbox(producer, database) as outbox:
        result = await outbox.send(_message(1))
        assert result is not None
        assert await outbox.count() == 0
    assert producer.bodies == [b"1"]


@pytest.mark.parametrize("error", [ConnectFailed("down"), NoRoute("gone")])
async def test_failed_sends_are_kept_and_arrive_in_order(database: str, error: Exception) -> None:
    producer = FakeProducer()
    async with _outbox(producer, database) as outbox:
        producer.error = error
        assert [await outbox.send(_message(number)) for number in range(5)] == [None] * 5
        producer.error = None
        # Those that come now queue up behind.
        await asyncio.gather(*(outbox.send(_message(number)) for number in range(5, 10)))
        await eventually(lambda: len(producer.sent) == 10)
        assert producer.bodies == [b"%d" % number for number in range(10)]
        await eventually(lambda: not outbox._has_waiting)
        assert await outbox.send(_message(10)) is not None


async def test_what_waits_survives_a_restart_with_all_it_has(database: str) -> None:
    rich = Message(
        topic="T",
        body=bytes(range(256)),
        tags="t",
        keys=(key for key in ["a", "b"]),
        properties={"p": "ü"},
        delay_level=3,
        sharding_key="s",
    )

    broken = FakeProducer()
    broken.error = ConnectFailed("down")
    async with _outbox(broken, database) as outbox:
        await outbox.send(rich)
    producer = FakeProducer()
    async with _outbox(producer, database):
        await eventually(lambda: bool(producer.sent))
    [sent] = producer.sent
    assert (sent.body, sent.tags, list(sent.keys)) == (rich.body, "t", ["a", "b"])
    assert (sent.properties, sent.delay_level, sent.sharding_key) == ({"p": "ü"}, 3, "s")


async def test_all_sends_of_a_message_carry_one_id(database: str) -> None:
    producer = FakeProducer()
    seen: list[str] = []
    original = producer.send

    async def send(message: Message) -> SendResult:
        seen.append(message.internal_properties[UNIQ_KEY])
        return await original(message)

    producer.send = send  # type: ignore[method-assign]
    producer.error = ConnectFailed("down")
    async with _outbox(producer, database) as outbox:
        await outbox.send(_message(1))
        await eventually(lambda: producer.tries >= 3)
        producer.error = None
        await eventually(lambda: bool(producer.sent))
    assert len(set(seen)) == 1
    assert len(seen[0]) == 32


async def test_a_message_that_can_never_be_sent_is_the_callers_error(database: str) -> None:
    producer = FakeProducer()
    producer.refuses = {b"1"}
    async with _outbox(producer, database) as outbox:
        with pytest.raises(UsageError, match="never"):
            await outbox.send(_message(1))
        assert await outbox.count() == 0


async def test_in_the_table_it_is_set_aside_and_the_others_go_on(database: str) -> None:
    producer = FakeProducer()
    async with _outbox(producer, database) as outbox:
        producer.error = ConnectFailed("down")
        for number in range(3):
            await outbox.send(_message(number))
        producer.refuses = {b"1"}
        producer.error = None
        await eventually(lambda: producer.bodies == [b"0", b"2"])
        [(waiting, reason)] = await outbox.refused()
        assert (waiting.message.body, reason) == (b"1", "UsageError: never")
        assert await outbox.count() == 0


async def test_a_full_outbox_says_so(database: str) -> None:
    producer = FakeProducer()
    producer.error = ConnectFailed("down")
    table = OutboxTable(count_max=2)
    async with _outbox(producer, database, table=table) as outbox:
        await outbox.send(_message(1))
        await outbox.send(_message(2))
        with pytest.raises(OutboxFull, match="2 messages wait"):
            await outbox.send(_message(3))


async def test_messages_of_a_transaction_are_sent_if_it_is_committed(database: str) -> None:
    producer = FakeProducer()
    async with _outbox(producer, database) as outbox:
        connection = sqlite3.connect(database)
        with connection:
            connection.execute("CREATE TABLE orders (number INTEGER)")
        connection.execute("INSERT INTO orders VALUES (1)")
        outbox.table.add(connection, _message(1))
        connection.rollback()
        with connection:
            connection.execute("INSERT INTO orders VALUES (2)")
            outbox.table.add(connection, _message(2))
        connection.close()
        outbox.wake()
        await eventually(lambda: bool(producer.sent))
        await eventually(lambda: not outbox._has_waiting)
    assert producer.bodies == [b"2"]


def test_the_order_survives_a_clock_that_goes_back(database: str) -> None:
    clock = FakeClock()
    table = OutboxTable(clock=clock)
    connection = sqlite3.connect(database)
    table.create(connection)
    for number in range(3):
        table.add(connection, _message(number))
        clock.jump(-3600)
    # Another process, whose clock is late, too.
    other = OutboxTable(clock=clock)
    other.add(connection, _message(3))
    table.add(connection, _message(4))
    bodies = [waiting.message.body for waiting in table.oldest(connection, 10)]
    connection.close()
    assert bodies == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_database_that_is_away_fails_the_start(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        await _outbox(FakeProducer(), str(tmp_path / "missing" / "x.db")).start()


async def test_it_must_run(database: str) -> None:
    with pytest.raises(UsageError, match="does not run"):
        await _outbox(FakeProducer(), database).count()
