"""The queues of a store, as others see its files."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.unit.store.conftest import MakeMessage, StoreLab

from cometmq.store.files.store_directory import StoreDirectory


def test_a_queue_whose_messages_have_all_expired_ends_behind_the_last(
    lab: StoreLab, message: MakeMessage
) -> None:
    store = lab.open()
    for number in range(23):
        store.put(message("x" * 300, topic="Old", queue_id=number % 2))
    for _ in range(40):
        store.put(message("x" * 300))
    store.flush()
    for path in sorted(Path(lab.config.log_path).iterdir())[:3]:
        path.unlink()
    with closing(StoreDirectory(str(lab.root), lab.files)) as directory:
        assert directory.queue("Old", 0).bounds(directory.log) == (12, 12)
        assert directory.queue("Old", 1).bounds(directory.log) == (11, 11)
        assert directory.queue("T", 0).bounds(directory.log).end == 40
