"""Log records on their way to a topic, and an application that does not notice."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from tests.eventually import wait_until

from cometmq.base.errors import ConnectFailed, UsageError
from cometmq.client.aio.send.producer import PartlySent
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.helpers.log_handler import TopicHandler
from cometmq.model.messages.message import Message


class FakeProducer:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.failures = 0
        self.is_held = threading.Event()
        self.is_closed = False

    async def start(self) -> None:
        return None

    async def close(self) -> None:
        self.is_closed = True

    async def send_all(self, messages: Iterable[Message]) -> list[SendResult]:
        batch = list(messages)
        logging.getLogger("cometmq.client").warning("must not come back")
        logging.getLogger("some.library").warning("nor may this")
        if self.failures:
            self.failures -= 1
            raise PartlySent([], batch) from ConnectFailed("down")
        self.messages += batch
        return []


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def make(producer: FakeProducer) -> Iterator[Callable[..., TopicHandler]]:
    made: list[TopicHandler] = []

    def build(**options: Any) -> TopicHandler:
        handler = TopicHandler(
            "Logs", make_producer=lambda: producer, **({"flush_seconds": 0.01} | options)
        )
        made.append(handler)
        logging.getLogger().addHandler(handler)
        return handler

    yield build
    for handler in made:
        logging.getLogger().removeHandler(handler)
        handler.close()


def test_records_become_messages(make: Callable[..., TopicHandler], producer: FakeProducer) -> None:
    handler = make()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logging.getLogger("app.orders").warning("order %d is late ü", 17)
    wait_until(lambda: bool(producer.messages))
    [message] = producer.messages
    assert message.topic == "Logs"
    assert message.body.decode() == "WARNING order 17 is late ü"
    assert (message.tags, list(message.keys)) == ("WARNING", ["app.orders"])


def test_own_records_and_those_of_its_own_thread_are_left_out(
    make: Callable[..., TopicHandler], producer: FakeProducer
) -> None:
    handler = make()
    logging.getLogger("cometmq").error("own")
    logging.getLogger("cometmq.client").error("own")
    logging.getLogger("cometmqish").error("not own")
    wait_until(lambda: bool(producer.messages))
    handler.close()
    assert [message.body for message in producer.messages] == [b"not own"]


def test_close_sends_what_waits(make: Callable[..., TopicHandler], producer: FakeProducer) -> None:
    handler = make(flush_seconds=60.0, batch_max=1000)
    for number in range(20):
        logging.getLogger("app").warning("%d", number)
    handler.close()
    assert [int(message.body) for message in producer.messages] == list(range(20))
    assert (handler.sent, handler.dropped, producer.is_closed) == (20, 0, True)
    logging.getLogger("app").warning("too late")
    assert handler.dropped == 1


def test_failed_sends_are_repeated_in_order(
    make: Callable[..., TopicHandler], producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.client.helpers.log_handler.PAUSE_SECONDS", 0.01)
    producer.failures = 3
    make(batch_max=2)
    for number in range(6):
        logging.getLogger("app").warning("%d", number)
    wait_until(lambda: len(producer.messages) == 6)
    assert [int(message.body) for message in producer.messages] == list(range(6))


def test_a_full_queue_drops_at_once_and_counts(producer: FakeProducer) -> None:
    gate = threading.Event()

    class Slow(FakeProducer):
        async def start(self) -> None:
            gate.wait(10)

    handler = TopicHandler("Logs", make_producer=Slow, queue_max=5, flush_seconds=0.01)
    logger = logging.getLogger("app.full")
    logger.addHandler(handler)
    try:
        started = time.monotonic()
        for number in range(1000):
            logger.warning("%d", number)
        assert time.monotonic() - started < 5
        assert handler.dropped == 995
    finally:
        gate.set()
        logger.removeHandler(handler)
        handler.close()
    assert handler.sent == 5


def test_close_does_not_wait_for_ever() -> None:
    class Dead(FakeProducer):
        async def start(self) -> None:
            raise ConnectFailed("down")

    handler = TopicHandler("Logs", make_producer=Dead, flush_seconds=0.01, close_seconds=0.05)
    logger = logging.getLogger("app.dead")
    logger.addHandler(handler)
    try:
        logger.warning("x")
        started = time.monotonic()
        handler.close()
        assert time.monotonic() - started < 5
        assert (handler.sent, handler.dropped) == (0, 1)
    finally:
        logger.removeHandler(handler)
    wait_until(
        lambda: all(thread.name != "cometmq-log-handler" for thread in threading.enumerate())
    )


def test_a_record_that_cannot_be_formatted_does_not_reach_the_application(
    make: Callable[..., TopicHandler],
    producer: FakeProducer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = make()
    record = logging.LogRecord("app", logging.WARNING, "f", 1, "%d", ("no number",), None)
    handler.handle(record)
    assert "no number" in capsys.readouterr().err
    handler.close()
    assert producer.messages == []


def test_senseless_settings_are_refused() -> None:
    with pytest.raises(UsageError):
        TopicHandler("a b")
    with pytest.raises(UsageError):
        TopicHandler("Logs", queue_max=0)
