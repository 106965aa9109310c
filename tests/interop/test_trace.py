"""Message trace in both directions: RocketMQ's own decoder reads what we wrote, and we read what its client wrote."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.aio.send.transaction_producer import TransactionProducer, TransactionState
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.trace_config import TraceConfig
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import TRACE_TOPIC
from cometmq.model.trace import PubTrace, TraceRecord, decode_traces

from .conftest import required, server_kind
from .features import JAVA_VERSIONS
from .java import fetch_jars
from .servers import HERE
from .single_java import SingleJava
from .systems import Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

TOPIC = "Traced"
SECONDS_MAX = 60.0
TRIES_MAX = 3
TRACE = TraceConfig(is_trace_on=True, flush_interval_ms=100)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NameServer, Broker]]:
    directory = tmp_path_factory.mktemp("trace")
    with required():
        commands = commands_of(server_kind(), directory / "home")
    with NameServer(commands, directory / "namesrv").running() as name_server:
        broker = Broker(
            [name_server],
            directory / "broker",
            "broker-trace",
            traceTopicEnable="true",
            mappedFileSizeCommitLog=16 * 1024 * 1024,
            maxHashSlotNum=5000,
            maxIndexNum=20000,
            messageDelayLevel="1s " * 17 + "1s",
            diskMaxUsedSpaceRatio=95,
        )
        try:
            broker.start(commands)
            yield name_server, broker
        finally:
            broker.kill()


@pytest.fixture(params=JAVA_VERSIONS)
def reader(request: pytest.FixtureRequest) -> SingleJava:
    with required():
        return SingleJava("TraceReader", fetch_jars(HERE / "pom.xml", request.param))


async def _work(name_servers: str) -> dict[str, str]:
    """Traced clients at work: the ids of messages by what became of them."""
    ids: dict[str, str] = {}
    seen: dict[str, int] = {}
    done = asyncio.Event()

    async def listener(message: ReceivedMessage) -> Outcome | None:
        count = seen[message.message_id] = seen.get(message.message_id, 0) + 1
        if message.body == b"twice" and count == 1:
            return Outcome.later(1)
        if message.body == b"twice":
            done.set()
        return None

    config = ProducerConfig(trace=TRACE)
    consumer = PushConsumer(
        "traced-consumers",
        listener=listener,
        name_servers=name_servers,
        config=PushConsumerConfig(
            trace=TRACE, consume_from_where="CONSUME_FROM_FIRST_OFFSET", rebalance_interval_ms=500
        ),
    )
    consumer.subscribe(TOPIC)
    async with Producer("traced-producers", name_servers=name_servers, config=config) as producer:
        plain = Message(topic=TOPIC, body=b"twice", tags="paid", keys=["o-1", "o-2"])
        ids["twice"] = (await producer.send(plain)).message_id
        delayed = Message(topic=TOPIC, body=b"late", delay_level=1)
        ids["delayed"] = (await producer.send(delayed)).message_id
        batch = [Message(topic=TOPIC, body=b"b1"), Message(topic=TOPIC, body=b"b22")]
        ids["b1"], ids["b2"] = (await producer.send_batch(batch)).message_id.split(",")
        async with consumer:
            async with asyncio.timeout(SECONDS_MAX):
                await done.wait()
    return ids


async def _transact(name_servers: str) -> str:
    async with TransactionProducer(
        "traced-transactions",
        execute=lambda message, argument: TransactionState.COMMIT,
        check=lambda message: TransactionState.UNKNOWN,
        name_servers=name_servers,
        config=ProducerConfig(trace=TRACE),
    ) as producer:
        result = await producer.send_transaction(Message(topic=TOPIC, body=b"t", keys=["t-1"]))
        return result.sent.message_id


def test_rocketmqs_decoder_reads_our_trace(
    servers: tuple[NameServer, Broker], reader: SingleJava, tmp_path: Path
) -> None:
    name_server, broker = servers
    ids = asyncio.run(_work(name_server.address))
    lines = _read(reader, name_server.address, tmp_path, ids.values(), count=5)
    by_id: dict[str, list[list[str]]] = {}
    for line in lines:
        by_id.setdefault(line[1], []).append(line)

    twice = by_id[ids["twice"]]
    kinds = [line[0] for line in twice]
    assert kinds.count("Pub") == 1
    assert kinds.count("SubBefore") == kinds.count("SubAfter") == 2
    [pub] = [line for line in twice if line[0] == "Pub"]
    assert pub[2:8] == ["traced-producers", TOPIC, "paid", "o-1 o-2", "DefaultRegion", "true"]
    assert pub[9:11] == ["5", "Normal_Msg"]
    assert pub[13] == broker.address
    assert len(pub[14]) == 32
    assert {line[2] for line in twice if line[0] == "SubBefore"} == {"traced-consumers"}
    assert sorted(line[8] for line in twice if line[0] == "SubBefore") == ["0", "1"]
    ends = [(line[7], line[12]) for line in twice if line[0] == "SubAfter"]
    assert sorted(ends) == [("false", "4"), ("true", "0")]

    [late] = [line for line in by_id[ids["delayed"]] if line[0] == "Pub"]
    assert late[10] == "Delay_Msg"
    sizes = [line[9] for name in ("b1", "b2") for line in by_id[ids[name]] if line[0] == "Pub"]
    assert sizes == ["2", "3"]


def test_rocketmqs_decoder_reads_outcomes_of_transactions(
    servers: tuple[NameServer, Broker], reader: SingleJava, tmp_path: Path
) -> None:
    name_server, _ = servers
    message_id = asyncio.run(_transact(name_server.address))
    lines = _read(reader, name_server.address, tmp_path, [message_id], count=2)
    by_kind = {line[0]: line for line in lines}
    assert by_kind["Pub"][10] == "Trans_Msg_Half"
    assert by_kind["EndTransaction"][2:6] == ["traced-transactions", TOPIC, "null", "t-1"]
    assert by_kind["EndTransaction"][10:12] == ["Trans_msg_Commit", "COMMIT_MESSAGE"]


def test_we_read_the_trace_of_rocketmqs_client(
    servers: tuple[NameServer, Broker], reader: SingleJava, tmp_path: Path
) -> None:
    name_servers = servers[0].address
    [record] = _sent_by_java(name_servers, reader, tmp_path)
    assert isinstance(record, PubTrace)
    assert (record.group, record.topic, record.tags, record.keys, record.body_bytes) == (
        "traced-java",
        TOPIC,
        "tag",
        "traced-key",
        4,
    )
    assert record.is_success
    assert record.region_id == "DefaultRegion"


def test_rocketmqs_consumer_writes_a_trace(
    servers: tuple[NameServer, Broker], reader: SingleJava, tmp_path: Path
) -> None:
    """That of 5.x does so only for messages that are stored with their region."""
    name_servers = servers[0].address
    seconds_max = 2 * SECONDS_MAX
    printed = reader.run(
        tmp_path / "consume", ["consume", name_servers, TOPIC], seconds_max=seconds_max
    )
    message_id = printed.split()[-1]
    records = asyncio.run(_find(name_servers, message_id, count=2))
    assert sorted(record.WORD for record in records) == ["SubAfter", "SubBefore"]


def _sent_by_java(name_servers: str, reader: SingleJava, home: Path) -> list[TraceRecord]:
    """The trace of a message of RocketMQ's client. It ends without waiting for the answer to its trace, so on a busy
    machine the trace may not leave at all: then it sends once more."""
    for attempt in range(TRIES_MAX):
        command = ["send", name_servers, TOPIC]
        printed = reader.run(home / f"send-{attempt}", command, seconds_max=SECONDS_MAX)
        try:
            return asyncio.run(_find(name_servers, printed.split()[-1], count=1))
        except TimeoutError:
            print(f"no trace, try {attempt + 1} of {TRIES_MAX}")
    raise AssertionError("RocketMQ's client left no trace that we can read")


async def _find(name_servers: str, message_id: str, *, count: int) -> list[TraceRecord]:
    """The records of a message, once there are so many."""
    async with (
        Producer("readers", name_servers=name_servers) as client,
        asyncio.timeout(SECONDS_MAX),
    ):
        while True:
            found = await client.query(TRACE_TOPIC, message_id)
            records = [one for each in found for one in decode_traces(each.body.decode())]
            records = [record for record in records if record.message_id == message_id]
            if len(records) >= count:
                return records
            await asyncio.sleep(0.2)


def _read(
    reader: SingleJava, name_servers: str, home: Path, ids: object, *, count: int
) -> list[list[str]]:
    """What the Java program finds by the ids; again while it finds too little: the index comes after the message."""
    text = "".join(f"{each}\n" for each in ids)  # type: ignore[attr-defined]
    deadline = time.monotonic() + SECONDS_MAX
    lines: list[list[str]] = []
    while len(lines) < count and time.monotonic() < deadline:
        with contextlib.suppress(AssertionError):
            printed = reader.run(
                home / "read",
                ["read", name_servers, TRACE_TOPIC],
                text=text,
                seconds_max=SECONDS_MAX,
            )
            lines = [line.split("\t") for line in printed.splitlines() if "\t" in line]
    assert len(lines) >= count, lines
    return lines
