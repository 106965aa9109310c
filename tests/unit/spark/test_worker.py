"""What the reading of a partition does to the process it runs in."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cometmq.spark import worker

BATCH_BYTES = 8 << 20
BATCHES = 4


def test_what_the_first_tasks_leave_behind_is_left_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_tasks_begun", 0)
    kept = []
    before = gc.get_freeze_count()
    try:
        for _ in range(worker.TASKS):
            worker.begin_task()
            frozen = gc.get_freeze_count()
            assert frozen > before
            before = frozen
            # What a task imports on its way.
            kept.append([[number] for number in range(1000)])
        worker.begin_task()
        assert gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


def test_a_task_does_not_start_with_the_memory_of_the_one_before() -> None:
    batches = [pa.allocate_buffer(BATCH_BYTES) for _ in range(BATCHES)]
    for batch in batches:
        np.frombuffer(batch, dtype=np.uint8).fill(1)
    before = _resident_bytes()
    del batch, batches

    worker.begin_task()

    assert _resident_bytes() <= before - BATCHES * BATCH_BYTES // 2


def _resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024
