"""Transactions when a slave takes over: the master's log up to some byte, tables of another moment, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.servers import running_broker, running_name_server

from cometmq.broker.server import Broker
from cometmq.client import (
    ClientConfig,
    Message,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
)
from cometmq.client.aio import PushConsumer, TransactionProducer, TransactionState
from cometmq.model.messages.record import Record, decode_record
from cometmq.model.names import HALF_TOPIC

from .raw_client import RawClient

TOPIC = "Promoted"
GROUP = "promoted-writers"
READERS = "promoted-readers"
FILE_BYTES = 16 * 1024
SETTINGS = {
    "brokerName": "promoted",
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "mappedFileSizeConsumeQueue": str(20 * 1000),
    "maxMessageSize": "2048",
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
    "transactionTimeOut": "100",
    "transactionCheckInterval": "100",
    "transactionCheckMax": "1000",
}
# What a slave asks its master for every ten seconds, and the file it keeps it in.
COPIED = {
    "topics.json": 21,
    "consumerOffset.json": 43,
    "delayOffset.json": 45,
    "subscriptionGroup.json": 201,
}
COUNT = 90
CUTS = 6


@dataclass(frozen=True)
class Copy:
    """What a slave got of its master's tables, and what the readers had consumed by then."""

    tables: dict[str, bytes]
    taken: frozenset[bytes]


class Bank:
    """What became of the local transactions. It is the first letter of a body that says when it becomes known."""

    def __init__(self) -> None:
        self.decided: dict[bytes, TransactionState] = {}
        self.is_all_known = False
        self.asked: Counter[bytes] = Counter()

    async def execute(self, message: Message, number: Any) -> TransactionState:
        body = message.body
        self.decided[body] = TransactionState.COMMIT if number % 2 else TransactionState.ROLLBACK
        return self.decided[body] if body.startswith(b"now") else TransactionState.UNKNOWN

    async def check(self, message: ReceivedMessage) -> TransactionState:
        self.asked[message.body] += 1
        if message.body.startswith(b"later") and not self.is_all_known:
            return TransactionState.UNKNOWN
        return self.decided[message.body]

    def committed(self, bodies: set[bytes]) -> set[bytes]:
        return {one for one in bodies if self.decided[one] is TransactionState.COMMIT}


@pytest.mark.timeout(120)
async def test_a_new_master_asks_about_what_its_log_does_not_tell(tmp_path: Path) -> None:
    await _promote_again_and_again(tmp_path, Random(11))


async def _promote_again_and_again(directory: Path, chance: Random) -> None:
    bank = Bank()
    # The producer lives through all of it, and finds each new master by itself.
    async with running_name_server() as name_servers, _producer(name_servers, bank) as sender:
        async with (
            _broker(directory / "master", name_servers) as master,
            _reader(name_servers) as taken,
        ):
            copies, log = await _a_life(master, sender, bank, taken)
        starts = [record.physical_offset for record in _records(log)]
        for number in range(CUTS):
            # Between two records, or inside of the last; with tables from before, or from after what the log has.
            last = chance.choice(starts[len(starts) // 2 :])
            slave_log = log[: last + (0, 0, 1, 50, 150, 250)[number]]
            copy = copies[number % len(copies)]
            slave = directory / f"slave-{number}"
            _write_slave(slave, slave_log, copy.tables)
            bank.asked.clear()
            async with _broker(slave, name_servers) as master, _reader(name_servers) as taken:
                await _check(master, bank, slave_log, copy.taken, taken)


async def _a_life(
    master: Broker, sender: TransactionProducer, bank: Bank, taken: set[bytes]
) -> tuple[list[Copy], bytes]:
    """What a slave could have copied of a master at work: tables at several moments, and its log in the end."""
    copies = []
    for number in range(COUNT):
        kind = (b"now", b"soon", b"later")[number // 2 % 3]
        body = (b"%s-%d" % (kind, number)).ljust(60)
        await sender.send_transaction(Message(topic=TOPIC, body=body), number)
        if number % (COUNT // 3) == COUNT // 3 - 1:
            await _asked_twice_more(bank)
            copies.append(Copy(await _tables(master.address), frozenset(taken)))
    known = bank.committed({body for body in bank.decided if not body.startswith(b"later")})
    await eventually(lambda: taken >= known, "what is known to be committed is consumed")
    assert taken == known
    copies.append(Copy(await _tables(master.address), frozenset(taken)))
    bank.is_all_known = True
    return copies, _log_of(master)


async def _asked_twice_more(bank: Bank) -> None:
    """So that the log has copies of half messages, and copies of those."""
    before = bank.asked.copy()
    await eventually(
        lambda: max((bank.asked - before).values(), default=0) >= 2, "the producer is asked"
    )


async def _check(
    master: Broker, bank: Bank, log: bytes, taken_before: frozenset[bytes], taken: set[bytes]
) -> None:
    """From the log that it has, the new master finds out about everything that it was ever told."""
    halves = {record.body for record in _records(log) if record.topic == HALF_TOPIC}
    delivered = {record.body for record in _records(log) if record.topic == TOPIC}
    assert halves > delivered
    await eventually(
        lambda: not master.rooms.transaction.transactions.open_count,
        "every transaction is ended",
        20,
    )
    async with RawClient(master.address) as client:
        found = [record.body for queue in range(4) for record in await client.read(TOPIC, queue)]
    assert Counter(found) == Counter(bank.committed(halves)), "lost, doubled, or in spite of it"
    assert not delivered & set(bank.asked), "asked about what the log has as committed"
    await eventually(lambda: taken_before | taken >= set(found), "what was committed is consumed")
    assert taken <= set(found)


def _records(log: bytes) -> list[Record]:
    """Every whole record."""
    found: list[Record] = []
    position = 0
    while position + 8 <= len(log):
        size = int.from_bytes(log[position : position + 4], "big")
        if not size or position + size > len(log):
            break
        if log[position + 4 : position + 8] != b"\xcb\xd4\x31\x94":
            found.append(decode_record(log[position : position + size]))
        position += size
    return found


def _log_of(master: Broker) -> bytes:
    files = sorted(Path(master.live.current.store.log_path).iterdir())
    return b"".join(file.read_bytes() for file in files)[: master.core.store.max_physical]


async def _tables(address: str) -> dict[str, bytes]:
    async with RawClient(address) as client:
        return {name: bytes((await client.ask(code)).body) for name, code in COPIED.items()}


def _write_slave(root: Path, log: bytes, tables: dict[str, bytes]) -> None:
    (root / "commitlog").mkdir(parents=True)
    (root / "config").mkdir()
    for start in range(0, len(log), FILE_BYTES):
        content = log[start : start + FILE_BYTES].ljust(FILE_BYTES, b"\0")
        (root / "commitlog" / f"{start:020}").write_bytes(content)
    for name, content in tables.items():
        (root / "config" / name).write_bytes(content)


def _broker(root: Path, name_servers: str) -> AbstractAsyncContextManager[Broker]:
    return running_broker(root, namesrvAddr=name_servers, **SETTINGS)


@asynccontextmanager
async def _producer(name_servers: str, bank: Bank) -> AsyncIterator[TransactionProducer]:
    config = ProducerConfig(client=_client_config(name_servers))
    async with TransactionProducer(
        GROUP, execute=bank.execute, check=bank.check, config=config
    ) as sender:
        yield sender


@asynccontextmanager
async def _reader(name_servers: str) -> AsyncIterator[set[bytes]]:
    """What the group consumes, from where the broker says that it stopped."""
    taken: set[bytes] = set()

    async def take(message: ReceivedMessage) -> None:
        taken.add(message.body)

    config = PushConsumerConfig(
        client=_client_config(name_servers),
        rebalance_interval_ms=100,
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    )
    async with PushConsumer(READERS, listener=take, config=config) as consumer:
        consumer.subscribe(TOPIC)
        yield taken


def _client_config(name_servers: str) -> ClientConfig:
    return ClientConfig(
        name_servers=name_servers,
        poll_name_server_millis=100,
        heartbeat_millis=100,
        persist_offsets_millis=100,
    )
