"""What a task reads, without Spark: bulk and ordinary pulls, other addresses, losses, bounded memory."""

from __future__ import annotations

import gc
import logging
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cometmq.client import Message
from cometmq.client.aio.bulk.raw_pull import read_bulk_pull
from cometmq.client.core.broker_order import Place
from cometmq.client.sync import Producer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.record import encode_record
from cometmq.model.names import is_system_topic
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import BINARY, Command
from cometmq.protocol.frame import FrameDecoder, encode_bytes
from cometmq.spark.client import open_client
from cometmq.spark.errors import DataLost, ReadStalled
from cometmq.spark.source import fetch
from cometmq.spark.source.discovery import find_queues
from cometmq.spark.source.fetch import Fetcher, Wanted
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import SourceOptions, read_source_options
from cometmq.testing.cluster import Cluster as Running
from cometmq.testing.cluster import cluster
from cometmq.testing.cluster_view import ClusterView


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with cluster() as servers:
        yield servers


@pytest.fixture(scope="module")
def servers(running: Running) -> ClusterView:
    return ClusterView(running.name_servers, running.broker_address, suffix="fetch")


@pytest.fixture(scope="module")
def filled(servers: ClusterView) -> str:
    """1,000 messages in one queue, every third with the tag c."""
    topic = servers.create_topic("filled", queues=1)
    with Producer("sends", name_servers=servers.name_servers) as producer:
        for number in range(0, 1000, 50):
            producer.send_batch(
                [
                    Message(topic=topic, body=b"%d" % n + b"." * 1000, tags="abc"[n % 3])
                    for n in range(number, number + 50)
                ]
            )
    return topic


def options_for(servers: ClusterView, topic: str, **more: str) -> SourceOptions:
    return read_source_options(
        {"nameServers": servers.name_servers, "topic": topic, "columns": "queueOffset,body", **more}
    )


def wanted_of(servers: ClusterView, topic: str, start: int, end: int) -> Wanted:
    with open_client(options_for(servers, topic).connection) as client:
        (queue,) = client.queues(topic)
        return Wanted(Range(queue, start, end), client.places(queue.broker_name))


def rows(options: SourceOptions, *wanted: Wanted, **more: Any) -> list[int]:
    fetcher = Fetcher(options, **more)
    try:
        found: list[int] = []
        for batch in fetcher.read(wanted):
            numbers = [int(body.partition(b".")[0]) for body in batch["body"].to_pylist()]
            assert numbers == batch["queueOffset"].to_pylist()
            found += numbers
        return found
    finally:
        fetcher.close()


@contextmanager
def without_bulk(running: Running) -> Iterator[list[int]]:
    """As RocketMQ's own broker answers; the codes of all requests meanwhile."""
    guards = running.servers.broker.dispatcher.guards
    codes: list[int] = []

    def guard(_: object, command: Command) -> Command | None:
        codes.append(command.code)
        if command.code != RequestCode.BULK_PULL:
            return None
        return command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type not supported")

    guards.append(guard)
    try:
        yield codes
    finally:
        guards.remove(guard)


def test_bulk_pulls_end_where_the_range_ends(servers: ClusterView, filled: str) -> None:
    options = options_for(servers, filled, pullBytes="64k")
    assert rows(options, wanted_of(servers, filled, 7, 993)) == list(range(7, 993))


def test_several_ranges_one_after_the_other(servers: ClusterView, filled: str) -> None:
    options = options_for(servers, filled)
    first, second = wanted_of(servers, filled, 500, 510), wanted_of(servers, filled, 0, 5)
    assert rows(options, first, second) == [*range(500, 510), *range(5)]


def test_ordinary_pulls_serve_where_there_is_no_bulk_pull(
    running: Running, servers: ClusterView, filled: str
) -> None:
    options = options_for(servers, filled)
    with without_bulk(running) as codes:
        assert rows(options, wanted_of(servers, filled, 7, 993)) == list(range(7, 993))
    # Asked once, and not again.
    assert codes.count(RequestCode.BULK_PULL) == 1
    assert codes.count(RequestCode.PULL_MESSAGE) > 10


@pytest.mark.parametrize("is_bulk", [True, False])
def test_tags_are_compared_exactly(
    running: Running, servers: ClusterView, filled: str, is_bulk: bool
) -> None:
    options = options_for(servers, filled, tags="c || none")
    expected = [n for n in range(5, 700) if n % 3 == 2]
    wanted = wanted_of(servers, filled, 5, 700)
    if is_bulk:
        assert rows(options, wanted) == expected
    else:
        with without_bulk(running):
            assert rows(options, wanted) == expected


def test_conditions_are_evaluated_at_the_broker(
    running: Running, servers: ClusterView, filled: str
) -> None:
    wanted = wanted_of(servers, filled, 0, 1000)
    options = options_for(servers, filled, sql="TAGS = 'b'")
    assert rows(options, wanted) == list(range(1, 1000, 3))
    with without_bulk(running):
        assert rows(options, wanted) == list(range(1, 1000, 3))
    assert rows(options_for(servers, filled, sql="TAGS = 'nobody'"), wanted) == []


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_a_replica_is_read_when_the_master_is_gone(servers: ClusterView, filled: str) -> None:
    wanted = wanted_of(servers, filled, 0, 100)
    gone = Place(f"127.0.0.1:{free_port()}", is_master=True)
    replica = Place(wanted.places[0].address, is_master=False)
    options = options_for(servers, filled)
    assert rows(options, Wanted(wanted.range, (gone, replica))) == list(range(100))


def test_the_broker_is_looked_for_anew_when_no_address_answers(
    servers: ClusterView, filled: str
) -> None:
    wanted = wanted_of(servers, filled, 0, 100)
    gone = Place(f"127.0.0.1:{free_port()}", is_master=True)
    assert rows(options_for(servers, filled), Wanted(wanted.range, (gone,))) == list(range(100))
    assert rows(options_for(servers, filled), Wanted(wanted.range, ())) == list(range(100))


def test_a_read_goes_on_where_the_connection_broke(
    running: Running, servers: ClusterView, filled: str
) -> None:
    guards = running.servers.broker.dispatcher.guards
    pulls = 0

    def guard(connection: Any, command: Command) -> None:
        nonlocal pulls
        if command.code == RequestCode.BULK_PULL:
            pulls += 1
            if pulls in (3, 7):
                connection.close("a test")

    guards.append(guard)
    try:
        options = options_for(servers, filled, pullBytes="64k")
        assert rows(options, wanted_of(servers, filled, 0, 1000)) == list(range(1000))
    finally:
        guards.remove(guard)
    assert pulls > 10


def test_a_range_beyond_the_end_of_a_master_is_a_loss(
    servers: ClusterView, filled: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = wanted_of(servers, filled, 990, 1010)
    with pytest.raises(DataLost) as caught:
        rows(options_for(servers, filled), wanted)
    text = str(caught.value)
    queue = wanted.range.queue
    assert f"topic={filled} broker={queue.broker_name} queue=0" in text
    assert "wanted offsets 1000 to 1010, available are 0 to 1000" in text
    assert "failOnDataLoss" in text
    with caplog.at_level(logging.WARNING, "cometmq.spark"):
        lenient = options_for(servers, filled, failOnDataLoss="false")
        assert rows(lenient, wanted) == list(range(990, 1000))
    assert "messages are gone" in caplog.text


def test_a_replica_that_lags_is_waited_for(servers: ClusterView, filled: str) -> None:
    wanted = wanted_of(servers, filled, 990, 1010)
    replica = Wanted(wanted.range, (Place(wanted.places[0].address, is_master=False),))
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    fetcher = Fetcher(options_for(servers, filled), clock=lambda: now[0], sleep=sleep)
    # The route would tell that it is the master.
    fetcher._places_now = lambda left: replica.places  # type: ignore[method-assign]
    batches = fetcher.read([replica])
    assert next(batches)["queueOffset"].to_pylist() == list(range(990, 1000))
    with pytest.raises(ReadStalled, match=r"wanted offsets 1000 to 1010, nothing came for 60 s"):
        next(batches)
    fetcher.close()
    assert now[0] >= 60


def test_nothing_expired_is_passed_over_in_silence(
    running: Running, servers: ClusterView, filled: str
) -> None:
    """The broker says that the first 100 are gone."""
    guards = running.servers.broker.dispatcher.guards

    def guard(_: object, command: Command) -> Command | None:
        if command.code != RequestCode.BULK_PULL or int((command.ext or {})["offset"]) >= 100:
            return None
        ext = {"nextBeginOffset": "100", "minOffset": "100", "maxOffset": "1000", "count": "0"}
        return command.reply(ResponseCode.PULL_OFFSET_MOVED, ext=ext)

    guards.append(guard)
    try:
        wanted = wanted_of(servers, filled, 30, 110)
        with pytest.raises(DataLost, match="wanted offsets 30 to 110, available are 100 to 1000"):
            rows(options_for(servers, filled), wanted)
        lenient = options_for(servers, filled, failOnDataLoss="false")
        assert rows(lenient, wanted) == list(range(100, 110))
        assert rows(lenient, wanted_of(servers, filled, 30, 90)) == []
    finally:
        guards.remove(guard)


def test_no_reply_outlives_its_batch(servers: ClusterView, filled: str) -> None:
    """Memory then does not grow with the range, and nothing is left to the garbage collector."""
    fetcher = Fetcher(options_for(servers, filled, pullBytes="64k"))
    alive: list[weakref.ref[Any]] = []
    read = read_bulk_pull

    def noting(reply: Command, address: str) -> Any:
        # The reply before the last is decoded and handed out by now; the last one may be on its way.
        assert sum(one() is not None for one in alive) <= 1
        pulled = read(reply, address)
        assert pulled.sizes is not None
        alive.append(weakref.ref(pulled.sizes))
        return pulled

    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetch, "read_bulk_pull", noting)
            for _ in fetcher.read([wanted_of(servers, filled, 0, 1000)]):
                pass
    finally:
        gc.enable()
        fetcher.close()
    assert len(alive) > 10


def test_names_are_those_of_the_namespace(servers: ClusterView) -> None:
    wire = servers.create_topic("tenant%orders", queues=1)
    topic = wire.removeprefix("tenant%")
    with Producer("sends", name_servers=servers.name_servers) as producer:
        producer.send(Message(topic=wire, body=b"0"))
    options = read_source_options(
        {
            "nameServers": servers.name_servers,
            "topic": topic,
            "namespace": "tenant",
            "columns": "topic,body",
        }
    )
    asks = open_client(options.connection)
    assert [name for name in asks.topics() if not is_system_topic(name)] == [topic]
    (queue,) = find_queues(asks, options)
    assert queue == MessageQueue(queue.broker_name, 0, topic)
    fetcher = Fetcher(options)
    wanted = Wanted(Range(queue, 0, 1), asks.places(queue.broker_name))
    assert [batch.to_pylist() for batch in fetcher.read([wanted])] == [
        [{"topic": topic, "body": b"0"}]
    ]
    fetcher.close()
    asks.close()


RECORD = encode_record(
    topic=b"T",
    queue_id=0,
    queue_offset=0,
    physical_offset=0,
    flag=0,
    sys_flag=0,
    born_timestamp=0,
    born_host=bytes(8),
    store_timestamp=0,
    store_host=bytes(8),
    reconsume_times=0,
    prepared_transaction_offset=0,
    body=b"0",
    properties=b"",
)


@contextmanager
def broker_that_answers_in(encoding: int) -> Iterator[str]:
    """Every request is answered with one record, in a binary header that is said to be of this encoding."""

    def serve(peer: socket.socket) -> None:
        decoder = FrameDecoder()
        with peer:
            while data := peer.recv(1 << 16):
                for request in decoder.feed(data):
                    ext = {"nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1", "count": "1"}
                    reply = request.reply(ext=ext, body=RECORD + len(RECORD).to_bytes(4, "big"))
                    reply.encoding = BINARY
                    frame = bytearray(encode_bytes(reply))
                    frame[4] = encoding
                    peer.sendall(frame)

    def accept() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            serving = threading.Thread(target=serve, args=(peer,))
            serving.start()
            threads.append(serving)

    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *threads):
                thread.join(10)


def test_a_header_encoding_that_nobody_knows_is_refused() -> None:
    options = read_source_options(
        {
            "nameServers": f"127.0.0.1:{free_port()}",
            "topic": "T",
            "columns": "queueOffset,body",
            "readTimeout": "300ms",
        }
    )
    queue = MessageQueue("broker", 0, "T")
    with broker_that_answers_in(BINARY) as address:
        wanted = Wanted(Range(queue, 0, 1), (Place(address, is_master=True),))
        assert rows(options, wanted) == [0]
    with broker_that_answers_in(2) as address:
        wanted = Wanted(Range(queue, 0, 1), (Place(address, is_master=True),))
        with pytest.raises(ReadStalled, match="header encoding 2; expected 0 or 1"):
            rows(options, wanted)
