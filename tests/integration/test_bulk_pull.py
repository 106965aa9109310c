"""Bulk pulls over a socket, with the client that engines such as Spark use."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from statistics import median
from typing import Any

import pytest
from tests.integration.broker_links import broker_link, bulk_pull

from cometmq.base.errors import CallTimedOut, ConnectFailed, ConnectionLost
from cometmq.client.aio.bulk.raw_pull import BULK_BYTES, bulk_pull_request, read_bulk_pull
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.client.client_config import ClientConfig
from cometmq.client.sync.bulk_client import BrokerLink, BulkClient
from cometmq.model.messages.batch import BatchElement, encode_batch
from cometmq.model.messages.record import decode_records
from cometmq.protocol.command import Command
from cometmq.protocol.frame import FrameDecoder, encode_bytes
from cometmq.protocol.headers.pull import BulkPullHeader
from cometmq.protocol.reply_errors import RequestCodeNotSupported, TopicNotExist
from cometmq.remoting.large_body import LentMemory
from cometmq.testing.cluster import Cluster, cluster

COUNT = 12_000
BODY_BYTES = 1000


def header(offset: int = 0, **fields: Any) -> BulkPullHeader:
    values: dict[str, Any] = {
        "consumer_group": "Reader",
        "topic": "T",
        "queue_id": 0,
        "offset": offset,
        "max_bytes": BULK_BYTES,
        "max_count": 100_000,
    } | fields
    return BulkPullHeader(**values)


def fill(link: BrokerLink, count: int) -> None:
    """Messages whose body is their number, tagged by even and odd."""
    step = 1000
    for start in range(0, count, step):
        elements = [
            BatchElement(0, str(n).encode().ljust(BODY_BYTES), f"TAGS\x01{n % 2}".encode())
            for n in range(start, min(start + step, count))
        ]
        ext = {"a": "PG", "b": "T", "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "0"}
        ext |= {"h": "0", "i": "", "m": "true"}
        reply = link.call(Command(code=320, ext=ext, body=encode_batch(elements)))
        assert reply.code == 0, reply.remark


def test_a_whole_queue_in_a_few_replies() -> None:
    with cluster() as servers, broker_link(servers.broker_address) as link:
        fill(link, COUNT)
        numbers: list[int] = []
        sizes: list[int] = []
        offset = 0
        while True:
            pulled = bulk_pull(link, header(offset))
            if pulled.status is not PullStatus.FOUND:
                break
            records = decode_records(pulled.records)
            numbers += [int(record.body) for record in records]
            assert pulled.sizes is not None
            assert pulled.sizes.tolist() == [record.size_bytes for record in records]
            assert (pulled.min_offset, pulled.max_offset) == (0, COUNT)
            assert pulled.next_offset == offset + len(records)
            sizes.append(len(pulled.records))
            offset = pulled.next_offset
        assert (pulled.status, len(pulled.records)) == (PullStatus.NO_NEW_MSG, 0)
        assert numbers == list(range(COUNT))
        assert len(sizes) == 4
        assert min(sizes[:-1]) > BULK_BYTES - 2000


def test_a_reader_may_ask_ahead() -> None:
    with cluster() as servers, broker_link(servers.broker_address) as link:
        fill(link, 3000)
        ends = [1000, 2000, 3000]
        wishes = [header(end - 1000, end_offset=end) for end in ends]
        started = [link.start(bulk_pull_request(wish)) for wish in wishes]
        for end, call in reversed(list(zip(ends, started, strict=True))):
            pulled = read_bulk_pull(link.finish(call), link.address)
            assert pulled.next_offset == end
            assert int(decode_records(pulled.records)[0].body) == end - 1000


def test_records_lie_in_memory_that_is_used_again() -> None:
    with cluster() as servers, broker_link(servers.broker_address) as link:
        fill(link, 3000)
        memory = LentMemory()

        def pull(offset: int, end: int) -> memoryview:
            request = bulk_pull_request(header(offset, end_offset=end))
            pulled = read_bulk_pull(link.finish(link.start(request, memory)), link.address)
            records = memoryview(pulled.records)
            assert [int(one.body) for one in decode_records(records)] == [*range(offset, end)]
            return records

        first = pull(0, 1500)
        second = pull(1500, 3000)
        # Not given back yet, so that nobody has written into it.
        assert second.obj is not first.obj
        assert int(decode_records(first)[0].body) == 0
        memory.give_back(second)
        assert pull(1500, 2900).obj is not first.obj
        memory.give_back(first)
        third = pull(1500, 2900)
        assert third.obj is first.obj
        memory.give_back(third)
        assert pull(2000, 2600).obj is first.obj


def test_a_large_reply_over_a_slow_line_is_waited_for_as_long_as_bytes_come() -> None:
    body = bytes(2 << 20)
    piece_bytes = len(body) // 20

    def serve(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            (request,) = FrameDecoder().feed(peer.recv(1 << 16))
            frame = encode_bytes(request.reply(body=body))
            for at in range(0, len(frame), piece_bytes):
                peer.sendall(frame[at : at + piece_bytes])
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        # Longer than a pause between two pieces, shorter than all of them.
        with broker_link(f"127.0.0.1:{server.getsockname()[1]}", 1.5) as link:
            assert link.call(Command(1)).body == body
        serving.join()


def test_a_broker_that_sends_other_things_for_ever_is_given_up() -> None:
    stop = threading.Event()

    def serve(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            while not stop.wait(0.01):
                peer.sendall(encode_bytes(Command(code=0, flag=1, opaque=12345)))

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        with broker_link(f"127.0.0.1:{server.getsockname()[1]}", 0.05) as link:
            with pytest.raises(CallTimedOut):
                link.call(Command(1))
            stop.set()
        serving.join()


def test_time_between_start_and_finish_is_the_callers_own() -> None:
    with cluster() as servers, broker_link(servers.broker_address, 1.0) as link:
        fill(link, 3000)
        started = link.start(bulk_pull_request(header()))
        time.sleep(1.2)
        pulled = read_bulk_pull(link.finish(started), link.address)
        assert len(decode_records(pulled.records)) == 3000


def test_a_connection_that_a_server_closed_meanwhile_is_made_anew() -> None:
    """As servers do with one that is idle; nobody has noticed while no one waited."""
    closed = threading.Semaphore(0)

    def serve(server: socket.socket) -> None:
        for _ in range(3):
            peer, _ = server.accept()
            with peer:
                (request,) = FrameDecoder().feed(peer.recv(1 << 16))
                peer.sendall(encode_bytes(request.reply(body=b'{"topicList":["T"]}')))
            closed.release()

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with BulkClient(ClientConfig(name_servers=address)) as client:
            for _ in range(3):
                assert client.topics() == ["T"]
                assert closed.acquire(timeout=10)
        serving.join()


def test_filters_are_evaluated_at_the_broker() -> None:
    with cluster() as servers, broker_link(servers.broker_address) as link:
        fill(link, 1000)
        for text, kind in (("1", None), ("TAGS = '1'", "SQL92")):
            found: list[int] = []
            offset = 0
            while offset < 1000:
                wish = header(offset, subscription=text, expression_type=kind)
                pulled = bulk_pull(link, wish)
                found += [int(record.body) for record in decode_records(pulled.records)]
                offset = pulled.next_offset
            assert found == list(range(1, 1000, 2))


def test_refusals_are_typed() -> None:
    with cluster() as servers, broker_link(servers.broker_address) as link:
        with pytest.raises(TopicNotExist):
            bulk_pull(link, header(topic="Nowhere"))
        with (
            broker_link(servers.name_servers) as elsewhere,
            pytest.raises(RequestCodeNotSupported),
        ):
            bulk_pull(elsewhere, header())


def test_nobody_is_there() -> None:
    with (
        pytest.raises(ConnectFailed, match=r"cannot connect to 127\.0\.0\.1:1"),
        broker_link("127.0.0.1:1"),
    ):
        raise AssertionError


def test_a_server_that_says_nothing_or_leaves() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with broker_link(address, 0.1) as link:
            peer, _ = server.accept()
            with pytest.raises(CallTimedOut, match=r"did not answer within 0\.1 s"):
                bulk_pull(link, header())
            peer.close()
            with pytest.raises(ConnectionLost):
                bulk_pull(link, header())


def test_others_are_served_between_the_replies() -> None:
    """Readers that never stop asking do not keep anybody else waiting for long."""

    async def scenario(servers: Cluster) -> None:
        stop = threading.Event()
        all_read = threading.Barrier(4, timeout=30)

        def read() -> int:
            with broker_link(servers.broker_address) as link:
                count = pull(link)
                all_read.wait()
                while not stop.is_set():
                    count += pull(link)
            return count

        def pull(link: BrokerLink) -> int:
            begun = time.monotonic()
            count = len(bulk_pull(link, header(max_bytes=8 << 20)).sizes or ())
            pulls.append(time.monotonic() - begun)
            return count

        pulls: list[float] = []
        waits: list[float] = []
        readers = [asyncio.create_task(asyncio.to_thread(read)) for _ in range(3)]

        def probe() -> None:
            with broker_link(servers.broker_address) as link:
                all_read.wait()
                for _ in range(50):
                    begun = time.monotonic()
                    reply = link.call(Command(code=30, ext={"topic": "T", "queueId": "0"}))
                    assert reply.ext == {"offset": str(COUNT)}
                    waits.append(time.monotonic() - begun)

        try:
            await asyncio.to_thread(probe)
        finally:
            stop.set()
        assert min(await asyncio.gather(*readers)) > 0
        # On a busy machine, no longer than a reader waits for its own reply.
        assert median(waits) < max(0.25, median(pulls)), waits

    with cluster() as servers:
        with broker_link(servers.broker_address) as link:
            fill(link, COUNT)
        asyncio.run(scenario(servers))
