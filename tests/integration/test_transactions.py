"""Transactions through a real broker: exactly what was committed is delivered, once, over restarts and kills."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.errors import CometError
from cometmq.cli.server_process import ServerProcess
from cometmq.client.aio import PullConsumer, TransactionProducer, TransactionState
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import HALF_TOPIC, TRANSACTION_DISCARD_TOPIC
from cometmq.testing.cluster import cluster

from .raw_client import RawClient

TOPIC = "Transfers"
GROUP = "transfers"
SOON = {"transactionTimeOut": "300", "transactionCheckInterval": "200"}

COMMIT, ROLLBACK, UNKNOWN = (
    TransactionState.COMMIT,
    TransactionState.ROLLBACK,
    TransactionState.UNKNOWN,
)
STATES = {b"c": COMMIT, b"r": ROLLBACK, b"u": UNKNOWN}


async def as_told(message: Message, argument: Any) -> TransactionState:
    """The first letter of a body says what becomes of its transaction, the second what a check finds."""
    return STATES[message.body[:1]]


async def as_found(message: ReceivedMessage) -> TransactionState:
    return STATES[message.body[1:2]]


def producer(name_servers: str, check: Any = as_found, execute: Any = as_told) -> Any:
    return TransactionProducer(GROUP, execute=execute, check=check, name_servers=name_servers)


async def bodies(name_servers: str) -> list[bytes]:
    """Everything in the topic."""
    found: list[bytes] = []
    async with PullConsumer("reader", name_servers=name_servers) as consumer:
        for queue in await consumer.queues(TOPIC):
            offset, end = await consumer.min_offset(queue), await consumer.max_offset(queue)
            while offset < end:
                result = await consumer.pull(queue, offset)
                found += [message.body for message in result.messages]
                offset = result.next_offset
    return found


async def all_ended(client: RawClient) -> bool | None:
    """Whether the broker has no open transaction, as its saved position in the half queue tells."""
    ext = {"consumerGroup": "CID_RMQ_SYS_TRANS", "topic": HALF_TOPIC, "queueId": "0"}
    position = (await client.ask(14, ext)).ext or {}
    end = (await client.ask(30, {"topic": HALF_TOPIC, "queueId": "0"})).ext or {}
    return True if position["offset"] == end["offset"] != "0" else None


async def test_committed_rolled_back_and_found_out() -> None:
    sent = [b"c-", b"r-", b"uc", b"ur", b"uu"]
    async with (
        cluster(settings=SOON | {"transactionCheckMax": "3"}) as servers,
        RawClient(servers.broker_address) as client,
        producer(servers.name_servers) as sender,
    ):
        for body in sent:
            await sender.send_transaction(Message(topic=TOPIC, body=body))
        await eventually(lambda: all_ended(client), "every transaction is ended", 20)
        assert Counter(await bodies(servers.name_servers)) == Counter([b"c-", b"uc"])
        (discarded,) = await client.read(TRANSACTION_DISCARD_TOPIC)
        assert (discarded.body, discarded.properties["REAL_TOPIC"]) == (b"uu", TOPIC)
        assert discarded.properties["TRANSACTION_CHECK_TIMES"] == "3"


async def test_an_operator_has_a_discarded_transaction_checked_anew() -> None:
    is_known = False

    async def find_out(message: ReceivedMessage) -> TransactionState:
        return COMMIT if is_known else UNKNOWN

    async with (
        cluster(settings=SOON | {"transactionCheckMax": "2"}) as servers,
        RawClient(servers.broker_address) as client,
        producer(servers.name_servers, check=find_out) as sender,
    ):
        await sender.send_transaction(Message(topic=TOPIC, body=b"u-"))
        (discarded,) = await client.read_until(1, TRANSACTION_DISCARD_TOPIC)
        assert await bodies(servers.name_servers) == []
        is_known = True
        reply = await client.ask(323, {"msgId": discarded.offset_id})
        assert reply.code == 0, reply.remark
        await eventually(lambda: all_ended(client), "the transaction is ended", 20)
        assert await bodies(servers.name_servers) == [b"u-"]
        for wrong in ("", "nonsense", "7F00000100002A9F0000000000000001"):
            reply = await client.ask(323, {"msgId": wrong})
            assert reply.code == 1
            assert reply.remark


async def test_a_pull_that_waits_is_woken_by_a_commit() -> None:
    async with (
        cluster() as servers,
        producer(servers.name_servers) as sender,
        PullConsumer("waiter", name_servers=servers.name_servers) as consumer,
    ):
        first = await sender.send_transaction(Message(topic=TOPIC, body=b"c1"))
        queue = first.sent.queue
        await consumer.pull(queue, 0, wait_seconds=5)

        async def send_there() -> None:
            await sender.send_transaction(Message(topic=TOPIC, body=b"c2"))

        waits = [
            asyncio.create_task(consumer.pull(one, int(one == queue), wait_seconds=10))
            for one in await consumer.queues(TOPIC)
        ]
        await send_there()
        done, rest = await asyncio.wait(waits, timeout=5, return_when="FIRST_COMPLETED")
        assert [message.body for wait in done for message in wait.result().messages] == [b"c2"]
        for wait in rest:
            wait.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


async def test_another_producer_answers_after_a_restart(tmp_path: Path) -> None:
    never = SOON | {"transactionCheckInterval": "600000"}
    async with (
        cluster(settings=never, data_directory=str(tmp_path)) as servers,
        producer(servers.name_servers) as sender,
    ):
        for body in (b"uc-1", b"ur-2", b"c--3", b"uc-4"):
            await sender.send_transaction(Message(topic=TOPIC, body=body))
    async with (
        cluster(settings=SOON, data_directory=str(tmp_path)) as servers,
        RawClient(servers.broker_address) as client,
        producer(servers.name_servers) as other,
    ):
        # A producer is known to a broker once it has sent something to it.
        await other.send_transaction(Message(topic=TOPIC, body=b"c--5"))
        await eventually(lambda: all_ended(client), "every transaction is ended", 20)
        found = Counter(await bodies(servers.name_servers))
        assert found == Counter([b"uc-1", b"c--3", b"uc-4", b"c--5"])


async def test_many_answers_to_many_checks_count_once() -> None:
    """Producers so slow that each transaction is asked about several times before the first answer comes."""

    async def slow(message: ReceivedMessage) -> TransactionState:
        await asyncio.sleep(0.7)
        return await as_found(message)

    config = ProducerConfig(check_concurrency=64)
    async with (
        cluster(settings=SOON) as servers,
        RawClient(servers.broker_address) as client,
        TransactionProducer(
            GROUP,
            execute=as_told,
            check=slow,
            name_servers=servers.name_servers,
            config=config,
        ) as sender,
    ):
        sent = [b"uc%d" % number for number in range(10)]
        for body in sent:
            await sender.send_transaction(Message(topic=TOPIC, body=body))
        await eventually(lambda: all_ended(client), "every transaction is ended", 20)
        halves = await client.read(HALF_TOPIC)
        assert len(halves) > 2 * len(sent), "nothing was asked twice"
        assert Counter(await bodies(servers.name_servers)) == Counter(sent)


class Bank:
    """Local transactions by number: committed, rolled back, or not known before a check, a third each."""

    def __init__(self) -> None:
        self.pending: set[bytes] = set()
        self.decided: dict[bytes, TransactionState] = {}

    async def execute(self, message: Message, argument: Any) -> TransactionState:
        self.pending.discard(message.body)
        kind = int(argument) % 3
        if kind == 2:
            # The local transaction is under way. Whoever is asked later finds one of the two.
            self.decided[message.body] = COMMIT if int(argument) % 2 else ROLLBACK
            return UNKNOWN
        self.decided[message.body] = (COMMIT, ROLLBACK)[kind]
        return self.decided[message.body]

    async def check(self, message: ReceivedMessage) -> TransactionState:
        body = message.body
        if body in self.pending:
            return UNKNOWN
        if body.startswith(b"orphan-"):
            return COMMIT if int(body[7:]) % 2 else ROLLBACK
        # One whose half message was never confirmed, but stored all the same, was never carried out.
        return self.decided.get(body, ROLLBACK)


async def test_kills_cost_no_committed_transaction_as_long_as_the_producer_lives(
    tmp_path: Path,
) -> None:
    """The broker checks so often that it would give up before a producer is heard of again after each start."""
    settings = {
        "transactionTimeOut": "300",
        "transactionCheckInterval": "100",
        "transactionCheckMax": "6",
    }
    servers = ServerProcess(str(tmp_path), settings=settings)
    committed: set[bytes] = set()

    async def execute(message: Message, argument: Any) -> TransactionState:
        committed.add(message.body)
        # Every other outcome is told, and some of those go down with the broker.
        return COMMIT if int(argument) % 2 else UNKNOWN

    async def check(message: ReceivedMessage) -> TransactionState:
        return COMMIT if message.body in committed else ROLLBACK

    numbers = itertools.count()
    is_over = False

    async def work(sender: TransactionProducer) -> None:
        while not is_over:
            number = next(numbers)
            with contextlib.suppress(CometError):
                await sender.send_transaction(Message(topic=TOPIC, body=b"%d" % number), number)
            await asyncio.sleep(0.01)

    def committed_more(than: int) -> Callable[[], bool]:
        return lambda: len(committed) >= than + 30

    await servers.start()
    try:
        async with TransactionProducer(
            GROUP,
            execute=execute,
            check=check,
            name_servers=servers.name_server,
            config=ProducerConfig(retries=0),
        ) as sender:
            workers = [asyncio.create_task(work(sender)) for _ in range(4)]
            for _ in range(3):
                more = committed_more(len(committed))
                await eventually(more, "transactions are carried out", 40)
                await servers.kill()
                await servers.start()
            await eventually(committed_more(len(committed)), "it goes on", 40)
            is_over = True
            await asyncio.gather(*workers)

            async def all_delivered() -> bool | None:
                return True if committed <= set(await bodies(servers.name_server)) else None

            await eventually(all_delivered, "every committed transaction is delivered", 40)
        assert Counter(await bodies(servers.name_server)) == Counter(committed)
    finally:
        await servers.stop()


@pytest.mark.slow
@pytest.mark.timeout(150)
async def test_ten_thousand_transactions_over_restarts(tmp_path: Path) -> None:
    await _ten_thousand(str(tmp_path), 10_000)


async def _ten_thousand(directory: str, count: int) -> None:
    settings = {
        "transactionTimeOut": "1000",
        "transactionCheckInterval": "500",
        "mappedFileSizeCommitLog": str(1 << 20),
    }
    servers = ServerProcess(directory, settings=settings)
    bank = Bank()
    chance = random.Random(5)
    numbers = iter(range(count))
    done = 0

    async def work(sender: TransactionProducer) -> None:
        nonlocal done
        for number in numbers:
            attempt = 0
            while True:
                body = b"%d/%d" % (number, attempt) + b"." * chance.randrange(200)
                bank.pending.add(body)
                try:
                    await sender.send_transaction(Message(topic=TOPIC, body=body), number)
                    done += 1
                    break
                except CometError:
                    bank.pending.discard(body)
                    attempt += 1
                    await asyncio.sleep(0.05)

    async def reached(share: float) -> None:

        await eventually(
            lambda: done >= count * share, f"{share:.0%} of the transactions are sent", 60
        )

    await servers.start()
    try:
        async with TransactionProducer(
            GROUP,
            execute=bank.execute,
            check=bank.check,
            name_servers=servers.name_server,
            config=ProducerConfig(retries=0, check_queue_max=20_000),
        ) as sender:
            workers = [asyncio.create_task(work(sender)) for _ in range(64)]
            orphans = await _dying_producer(servers.name_server)
            await reached(0.3)
            await servers.kill()
            await servers.start()
            await reached(0.6)
            await servers.stop()
            await servers.start()
            await asyncio.gather(*workers)
            async with RawClient(servers.broker) as client:
                await eventually(lambda: all_ended(client), "every transaction is ended", 60)
        found = Counter(await bodies(servers.name_server))
        own = Counter({body: n for body, n in found.items() if not body.startswith(b"orphan-")})
        committed = {body for body, state in bank.decided.items() if state is COMMIT}
        assert len(bank.decided) == count
        assert own == Counter(committed)
        left = Counter({body: n for body, n in found.items() if body.startswith(b"orphan-")})
        assert set(left.values()) == {1}
        assert left.keys() >= {body for body in orphans if int(body[7:]) % 2}
        assert all(int(body[7:]) % 2 for body in left)
    finally:
        await servers.stop()


async def _dying_producer(name_server: str) -> set[bytes]:
    """What a producer of the group had confirmed when it was killed in the middle of its work."""
    script = Path(__file__).with_name("transaction_sender.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), name_server, GROUP, TOPIC, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    lines = [(await process.stdout.readline()).strip() for _ in range(100)]
    process.kill()
    await process.wait()
    return set(lines)
