"""A store on a real directory with small files, and a clock that stands still until it is told to move."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.ports import Files
from cometmq.model.address import pack_host
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import (
    CommitLogConfig,
    ConsumeQueueConfig,
    IndexConfig,
    StoreConfig,
)

HOST = pack_host("127.0.0.1", 10911)


class HandClock:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


class RoomyFiles(SystemFiles):
    """On a disk that is half empty, whatever the machine's is: a full one has the oldest log files deleted."""

    def used_ratio(self, path: str) -> float:
        return 0.5


class StoreLab:
    """Opens stores below one directory; ``crash`` gives the directory as a killed process leaves it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = HandClock()
        self.files: Files = RoomyFiles()
        self.config = StoreConfig(
            root=str(root),
            log=CommitLogConfig(file_bytes=4096, message_bytes_max=2000),
            queues=ConsumeQueueConfig(file_bytes=200),
            index=IndexConfig(slot_count=50, entry_count=100),
        )
        self.open_stores: list[MessageStore] = []

    def change(self, **slices: object) -> None:
        """Replace fields of a slice: ``change(log={"recover_by_truncating": True})``."""
        for name, fields in slices.items():
            assert isinstance(fields, dict)
            value = dataclasses.replace(getattr(self.config, name), **fields)
            self.config = dataclasses.replace(self.config, **{name: value})

    def open(self) -> MessageStore:
        store = MessageStore(self.config, store_host=HOST, files=self.files, clock=self.clock)
        store.load()
        self.open_stores.append(store)
        return store

    def crash(self, name: str = "crashed") -> StoreLab:
        """The disk as it is now, in another directory, with the process gone."""
        copy = StoreLab(self.root.with_name(f"{self.root.name}-{name}"))
        shutil.copytree(self.root, copy.root)
        copy.clock = self.clock
        copy.config = dataclasses.replace(self.config, root=str(copy.root))
        copy.open_stores = self.open_stores
        return copy

    def close(self) -> None:
        while self.open_stores:
            self.open_stores.pop().close()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreLab]:
    # No test here cuts the power, and a sync of a busy disk takes longer than all the rest.
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    lab = StoreLab(tmp_path / "store")
    yield lab
    lab.close()


MakeMessage = Callable[..., NewMessage]


@pytest.fixture
def message() -> MakeMessage:
    def make(
        body: bytes | str = b"body", topic: str = "T", queue_id: int = 0, **fields: object
    ) -> NewMessage:
        raw = body.encode() if isinstance(body, str) else body
        fields.setdefault("properties", b"")
        return NewMessage(topic=topic, queue_id=queue_id, body=raw, **fields)  # type: ignore[arg-type]

    return make
