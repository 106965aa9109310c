"""Stores with small files, filled by our own store, for tests that read them as files."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.archives import unpack

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import render_properties
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import CommitLogConfig, ConsumeQueueConfig, IndexConfig, StoreConfig
from cometmq.testing.fake_clock import FakeClock

GOLDEN = Path(__file__).parent.parent / "golden"
HOST = pack_host("127.0.0.1", 10911)
LOG_FILE_BYTES = 16_384
QUEUE_FILE_BYTES = 400


def open_store(root: Path, clock: FakeClock | None = None) -> MessageStore:
    """Log files of 16 KiB, queue files of 20 entries."""
    config = StoreConfig(
        root=str(root),
        log=CommitLogConfig(file_bytes=LOG_FILE_BYTES, message_bytes_max=8_000),
        queues=ConsumeQueueConfig(file_bytes=QUEUE_FILE_BYTES),
        index=IndexConfig(slot_count=10, entry_count=40, enabled=False),
    )
    store = MessageStore(config, store_host=HOST, files=SystemFiles(), clock=clock or SystemClock())
    store.load()
    return store


def message(topic: str, queue_id: int, body: bytes, tag: str | None = None) -> NewMessage:
    properties = {"KEYS": f"k{len(body)}"} | ({"TAGS": tag} if tag else {})
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=render_properties(properties).encode(),
        tags_code=java_hash(tag) if tag else 0,
    )


def fill(store: MessageStore, topic: str, count: int, *, queues: int = 2, start: int = 0) -> None:
    """Messages ``topic-0``, ``topic-1`` … with a hundred bytes of padding, queue after queue, tags a, b, c in turn."""
    for number in range(start, start + count):
        body = f"{topic}-{number}".encode().ljust(100, b".")
        store.put(message(topic, number % queues, body, "abc"[number % 3]))


def unpack_golden(version: str, directory: Path) -> Path:
    with tarfile.open(GOLDEN / f"store-{version}" / "store.tar.xz") as archive:
        # The wheel of the timer is 38 MB of zeros that nothing here reads.
        members = [member for member in archive if not member.name.endswith("timerwheel")]
        # Early releases of Python 3.11 do not know filters, later versions insist on one.
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        unpack(archive, directory, members)
    return directory / "store"
