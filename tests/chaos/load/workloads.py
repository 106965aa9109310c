"""What clients do in a run: unique sends, sends in order, transactions, delayed messages, each with a consumer."""

from __future__ import annotations

import zlib
from typing import Final

from tests.chaos.judge.checkers import ORDERED, TRANSACTIONS
from tests.chaos.judge.history import COMMITTED, ROLLED_BACK, read_body
from tests.chaos.load.context import CONSUMER, PRODUCER, Context, Senders

from cometmq.client import Message, ReceivedMessage, SendResult
from cometmq.client.aio import Producer, PushConsumer, TransactionProducer, TransactionState

SENDS: Final = "sends"
DELAYED: Final = "delayed"


class Consumed:
    """A workload whose messages a push consumer takes; the kinds differ in how they send."""

    def __init__(self, context: Context, name: str) -> None:
        self.name = name
        self._context = context
        self._producer = self._make_producer()
        self._senders = self._make_senders()
        self._consumer = PushConsumer(
            f"consume-{name}",
            listener=self._listen,
            orderly=name == ORDERED,
            name_servers=context.name_servers,
            config=CONSUMER,
        )
        self._consumer.subscribe(name)

    async def start(self) -> None:
        await self._producer.start()
        await self._consumer.start()
        self._senders.start()

    async def stop_sending(self) -> None:
        await self._senders.stop()

    async def close(self) -> None:
        await self._consumer.close()
        await self._producer.close()

    async def _listen(self, message: ReceivedMessage) -> None:
        self._context.took(self.name, message)

    def _make_producer(self) -> Producer:
        return Producer(
            f"produce-{self.name}", name_servers=self._context.name_servers, config=PRODUCER
        )

    def _make_senders(self) -> Senders:
        return Senders(self._context, self.name, self._send)

    async def _send(self, id: str, message: Message) -> SendResult:
        return await self._producer.send(message)


class Ordered(Consumed):
    def _make_senders(self) -> Senders:
        return Senders(self._context, self.name, self._send, keeps_order=True)

    async def _send(self, id: str, message: Message) -> SendResult:
        return await self._producer.send(message, sharding_key=id.rpartition("/")[0])


class Delayed(Consumed):
    def _make_senders(self) -> Senders:
        return Senders(self._context, self.name, self._send, delay=delay_of)

    async def _send(self, id: str, message: Message) -> SendResult:
        level = delay_level_of(id)
        if level:
            message.delay_level = level
        else:
            message.delay_ms = round(delay_of(id) * 1000)
        return await self._producer.send(message)


class Transactions(Consumed):
    def _make_producer(self) -> TransactionProducer:
        self._transactions = TransactionProducer(
            f"produce-{self.name}",
            execute=self._execute,
            check=self._check,
            name_servers=self._context.name_servers,
            config=PRODUCER,
        )
        return self._transactions

    def _make_senders(self) -> Senders:
        return Senders(self._context, self.name, self._send, fate=fate_of)

    async def _send(self, id: str, message: Message) -> SendResult:
        return (await self._transactions.send_transaction(message, id)).sent

    async def _execute(self, message: Message, id: str) -> TransactionState:
        # Some outcomes are only given when the broker asks.
        return TransactionState.UNKNOWN if zlib.crc32(id.encode()) % 5 == 0 else _state(id)

    async def _check(self, message: ReceivedMessage) -> TransactionState:
        return _state(read_body(message.body)[0])


def fate_of(id: str) -> str:
    return ROLLED_BACK if zlib.crc32(id.encode()) % 3 == 0 else COMMITTED


def _state(id: str) -> TransactionState:
    return TransactionState.COMMIT if fate_of(id) == COMMITTED else TransactionState.ROLLBACK


def delay_level_of(id: str) -> int:
    """1 or 2, or 0 for a delay that is no level."""
    return zlib.crc32(id.encode()) % 3


def delay_of(id: str) -> float:
    """Seconds; the levels are those of ``broker_host.SETTINGS``."""
    return float(delay_level_of(id)) or 1.5


PUSHED: Final = {
    SENDS: Consumed,
    ORDERED: Ordered,
    TRANSACTIONS: Transactions,
    DELAYED: Delayed,
}
