"""Backups of stores that real Java brokers have written: restored, every message is where it was."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path

import pytest
from tests.compat.test_golden_store import (  # noqa: F401 - fixtures
    Expected,
    check,
    expected,
    golden,
    open_store,
    root,
)

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.create import create
from cometmq.store.backup.restore import restore
from cometmq.store.backup.source import Source
from cometmq.store.backup.verify import verify
from cometmq.store.message_store import MessageStore

pytestmark = pytest.mark.usefixtures("golden")


def test_every_message_is_restored(root: Path, expected: list[Expected], tmp_path: Path) -> None:  # noqa: F811
    files, clock = SystemFiles(), SystemClock()
    backups = Backups(str(tmp_path / "backups"), files)
    with closing(Source(str(root), f"{root}/commitlog", files)) as source:
        manifest = create(source, backups, clock, pause=lambda: None, tell=no_tell)
    assert not manifest.damaged
    assert not verify(backups, manifest, no_tell).faults
    with closing(open_store(root)) as before:
        config = before.config
        ends = {(topic, queue): before.max_offset(topic, queue) for topic, queue in queues(before)}
    target = dataclasses.replace(config, root=str(tmp_path / "restored"))
    restore(backups, target, clock, name=None, at_ms=None, accept_damage=False, tell=no_tell)
    with closing(open_store(tmp_path / "restored")) as store:
        for wanted in expected:
            record = store.decoded_at(wanted["physicalOffset"])
            assert record is not None
            check(record, wanted)
        restored = {
            (topic, queue): store.max_offset(topic, queue) for topic, queue in queues(store)
        }
    assert restored == ends
    for name in ("topics.json", "consumerOffset.json", "delayOffset.json"):
        assert (tmp_path / "restored" / "config" / name).exists() == (
            root / "config" / name
        ).exists()


def queues(store: MessageStore) -> list[tuple[str, int]]:
    return [(topic, queue) for topic in store.topics() for queue in store.queue_ids(topic)]


def no_tell(what: str, done: int, total: int) -> None:
    pass
