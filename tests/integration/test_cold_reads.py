"""Old messages that have left the page cache, read from a real broker on a real disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.integration.broker_links import broker_link, bulk_pull

from cometmq.client.aio.bulk.raw_pull import BULK_BYTES
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.client.sync.bulk_client import BrokerLink
from cometmq.model.messages.batch import BatchElement, encode_batch
from cometmq.model.messages.record import decode_records
from cometmq.protocol.command import Command
from cometmq.protocol.headers.pull import BulkPullHeader
from cometmq.store.read.loading import Loader, Stretch
from cometmq.testing.cluster import cluster

COUNT = 30_000
READ_COUNT = 5000
"""From the first on. A start reads the end of the log, about half of it."""
SETTINGS = {"mappedFileSizeCommitLog": str(4 << 20), "maxMessageSize": str(2 << 20)}
BODY_BYTES = 1000


def fill(link: BrokerLink) -> None:
    for start in range(0, COUNT, 1000):
        elements = [
            BatchElement(0, str(n).encode().ljust(BODY_BYTES), b"")
            for n in range(start, start + 1000)
        ]
        ext = {"a": "PG", "b": "T", "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "0"}
        ext |= {"h": "0", "i": "", "m": "true"}
        reply = link.call(Command(code=320, ext=ext, body=encode_batch(elements)))
        assert reply.code == 0, reply.remark


def pulled(link: BrokerLink) -> bytes:
    """The first messages, by ordinary pulls."""
    data = b""
    offset = 0
    while offset < READ_COUNT:
        ext = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "queueOffset": str(offset)}
        ext |= {"maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "subscription": "*"}
        ext |= {"suspendTimeoutMillis": "0", "subVersion": "0", "expressionType": "TAG"}
        reply = link.call(Command(code=11, ext=ext))
        assert (reply.code, reply.ext is None) == (0, False), reply.remark
        assert reply.ext is not None
        data += bytes(reply.body)
        offset = int(reply.ext["nextBeginOffset"])
    return data


def pulled_in_bulk(link: BrokerLink) -> bytes:
    data = b""
    offset = 0
    while offset < READ_COUNT:
        header = BulkPullHeader(
            consumer_group="CG",
            topic="T",
            queue_id=0,
            offset=offset,
            max_bytes=BULK_BYTES,
            max_count=1000,
        )
        found = bulk_pull(link, header)
        assert found.status is PullStatus.FOUND
        data += bytes(found.records)
        offset = found.next_offset
    return data


def evict(store: Path) -> None:
    os.sync()
    for path in store.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def is_told(directory: Path) -> bool:
    """Whether the kernel and this file system tell what is not in memory."""
    path = directory / "probe"
    path.write_bytes(bytes(1 << 20))
    evict(directory)
    fd = os.open(path, os.O_RDONLY)
    try:
        os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
        path.unlink()
    return False


@pytest.mark.parametrize("read", [pulled, pulled_in_bulk], ids=["pull", "bulk"])
def test_the_same_bytes_from_disk_as_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: object
) -> None:
    assert callable(read)
    loads: list[str] = []
    load = Loader.load

    def counted(loader: Loader, stretches: Sequence[Stretch]) -> Future[None] | None:
        loads.extend(one.path for one in stretches)
        return load(loader, stretches)

    monkeypatch.setattr(Loader, "load", counted)
    data = tmp_path / "data"
    with (
        cluster(data_directory=str(data), settings=SETTINGS) as servers,
        broker_link(servers.broker_address) as link,
    ):
        fill(link)
        expected = read(link)
        assert loads == [], "it was written a moment ago"
    evict(data)
    with (
        cluster(data_directory=str(data), settings=SETTINGS) as servers,
        broker_link(servers.broker_address) as link,
    ):
        assert read(link) == expected
    bodies = [int(record.body) for record in decode_records(expected)]
    assert bodies == list(range(len(bodies)))
    assert len(bodies) >= READ_COUNT
    if is_told(tmp_path):
        assert any("commitlog" in path for path in loads)
