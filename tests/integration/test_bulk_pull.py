"""Bulk pulls over a socket, with the client that tasks use."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

pytest.importorskip("numpy")

import numpy as np

from cometmq.base.errors import CallTimedOut, ConnectFailed, ConnectionLost
from cometmq.client.config import Credentials
from cometmq.model.batch import BatchElement, encode_batch
from cometmq.model.record import decode_records
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.headers.pull import BulkPullHeader
from cometmq.protocol.reply_errors import RequestCodeNotSupported, TopicNotExist
from cometmq.spark.bulk_pull import REPLY_BYTES, ask, bulk_pull, take
from cometmq.spark.connection import BlockingConnection
from cometmq.testing.cluster import Cluster, cluster

COUNT = 12_000
BODY_BYTES = 1000


def header(offset: int = 0, **fields: Any) -> BulkPullHeader:
    values: dict[str, Any] = {
        "consumer_group": "Reader",
        "topic": "T",
        "queue_id": 0,
        "offset": offset,
        "max_bytes": REPLY_BYTES,
        "max_count": 100_000,
    } | fields
    return BulkPullHeader(**values)


def fill(connection: BlockingConnection, count: int) -> None:
    """Messages whose body is their number, tagged by even and odd."""
    step = 1000
    for start in range(0, count, step):
        elements = [
            BatchElement(0, str(n).encode().ljust(BODY_BYTES), f"TAGS\x01{n % 2}".encode())
            for n in range(start, min(start + step, count))
        ]
        ext = {"a": "PG", "b": "T", "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "0"}
        ext |= {"h": "0", "i": "", "m": "true"}
        reply = connection.call(Command(code=320, ext=ext, body=encode_batch(elements)))
        assert reply.code == 0, reply.remark


def test_a_whole_queue_in_a_few_replies() -> None:
    with cluster() as servers, BlockingConnection(servers.broker_address) as connection:
        fill(connection, COUNT)
        numbers: list[int] = []
        sizes: list[int] = []
        offset = 0
        while True:
            pulled = bulk_pull(connection, header(offset))
            if pulled.code is not ResponseCode.SUCCESS:
                break
            records = decode_records(pulled.records)
            numbers += [int(record.body) for record in records]
            assert pulled.sizes.tolist() == [record.size_bytes for record in records]
            assert (pulled.min_offset, pulled.max_offset) == (0, COUNT)
            assert pulled.next_offset == offset + pulled.count
            sizes.append(len(pulled.records))
            offset = pulled.next_offset
        assert (pulled.code, pulled.count) == (ResponseCode.PULL_NOT_FOUND, 0)
        assert numbers == list(range(COUNT))
        assert len(sizes) == 4
        assert min(sizes[:-1]) > REPLY_BYTES - 2000


def test_a_reader_may_ask_ahead() -> None:
    with cluster() as servers, BlockingConnection(servers.broker_address) as connection:
        fill(connection, 3000)
        ends = [1000, 2000, 3000]
        asked = [ask(connection, header(end - 1000, end_offset=end)) for end in ends]
        for end, number in reversed(list(zip(ends, asked, strict=True))):
            pulled = take(connection, number)
            assert pulled.next_offset == end
            assert int(decode_records(pulled.records)[0].body) == end - 1000


def test_records_lie_in_memory_that_is_used_again() -> None:
    with cluster() as servers, BlockingConnection(servers.broker_address) as connection:
        fill(connection, 1000)
        places = []
        for offset, end in ((0, 600), (600, 900), (900, 1000)):
            pulled = bulk_pull(connection, header(offset, end_offset=end))
            assert [int(one.body) for one in decode_records(pulled.records)] == [
                *range(offset, end)
            ]
            places.append(np.frombuffer(pulled.records, np.uint8).ctypes.data)
        assert places == [places[0]] * 3


def test_filters_are_evaluated_at_the_broker() -> None:
    with cluster() as servers, BlockingConnection(servers.broker_address) as connection:
        fill(connection, 1000)
        for text, kind in (("1", None), ("TAGS = '1'", "SQL92")):
            found: list[int] = []
            offset = 0
            while offset < 1000:
                wish = header(offset, subscription=text, expression_type=kind)
                pulled = bulk_pull(connection, wish)
                found += [int(record.body) for record in decode_records(pulled.records)]
                offset = pulled.next_offset
            assert found == list(range(1, 1000, 2))


def test_refusals_are_typed() -> None:
    with cluster() as servers, BlockingConnection(servers.broker_address) as connection:
        with pytest.raises(TopicNotExist):
            bulk_pull(connection, header(topic="Nowhere"))
        with (
            BlockingConnection(servers.name_servers, credentials=Credentials()) as elsewhere,
            pytest.raises(RequestCodeNotSupported),
        ):
            bulk_pull(elsewhere, header())


def test_nobody_is_there() -> None:
    with pytest.raises(ConnectFailed, match=r"cannot connect to 127\.0\.0\.1:1"):
        BlockingConnection("127.0.0.1:1")


def test_a_server_that_says_nothing_or_leaves() -> None:

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with BlockingConnection(address, timeout=0.1) as connection:
            peer, _ = server.accept()
            with pytest.raises(CallTimedOut):
                bulk_pull(connection, header())
            peer.close()
            with pytest.raises(ConnectionLost):
                bulk_pull(connection, header())


def test_others_are_served_between_the_replies() -> None:
    """Readers that never stop asking do not keep anybody else waiting for long."""

    async def scenario(servers: Cluster) -> None:
        stop = threading.Event()
        all_read = threading.Barrier(4, timeout=30)

        def read() -> int:
            with BlockingConnection(servers.broker_address) as connection:
                count = bulk_pull(connection, header(max_bytes=8 << 20)).count
                all_read.wait()
                while not stop.is_set():
                    count += bulk_pull(connection, header(max_bytes=8 << 20)).count
            return count

        readers = [asyncio.create_task(asyncio.to_thread(read)) for _ in range(3)]
        waits: list[float] = []

        def probe() -> None:
            with BlockingConnection(servers.broker_address) as connection:
                all_read.wait()
                for _ in range(50):
                    begun = time.monotonic()
                    reply = connection.call(Command(code=30, ext={"topic": "T", "queueId": "0"}))
                    assert reply.ext == {"offset": str(COUNT)}
                    waits.append(time.monotonic() - begun)

        try:
            await asyncio.to_thread(probe)
        finally:
            stop.set()
        assert min(await asyncio.gather(*readers)) > 0
        assert sorted(waits)[len(waits) // 2] < 0.25, waits

    with cluster() as servers:
        with BlockingConnection(servers.broker_address) as connection:
            fill(connection, COUNT)
        asyncio.run(scenario(servers))
