"""What the reading of a partition does to the process it runs in."""

from __future__ import annotations

import gc

import pytest

from cometmq.spark import worker


def test_what_the_first_tasks_leave_behind_is_left_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_tasks_begun", 0)
    kept = []
    before = gc.get_freeze_count()
    try:
        for _ in range(worker.TASKS):
            worker.spare_collector()
            frozen = gc.get_freeze_count()
            assert frozen > before
            before = frozen
            # What a task imports on its way.
            kept.append([[number] for number in range(1000)])
        worker.spare_collector()
        assert gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()
