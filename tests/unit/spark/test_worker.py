"""What the reading of a partition does to the process it runs in."""

from __future__ import annotations

import gc

import pytest

from cometmq.spark import worker


def test_what_is_there_is_left_to_itself_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_is_spared", False)
    before = gc.get_freeze_count()
    try:
        worker.spare_collector()
        frozen = gc.get_freeze_count()
        assert frozen > before
        later = [[number] for number in range(1000)]
        worker.spare_collector()
        assert gc.get_freeze_count() <= frozen
        assert later
    finally:
        gc.unfreeze()
