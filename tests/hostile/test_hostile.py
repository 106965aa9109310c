"""Some seconds of what ``make fuzz`` does for long: hostile peers at both servers, and a healthy client beside them."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.hostile.mutations import Mutations
from tests.hostile.run import attack

FRAMES = 8000


def test_servers_outlive_hostile_peers(tmp_path: Path) -> None:
    seed = int(os.environ.get("COMETMQ_HOSTILE_SEED") or random.randrange(1 << 31))
    print(f"COMETMQ_HOSTILE_SEED={seed}")
    report = attack(seed, FRAMES, tmp_path, scale=3, judges_time=False)
    print(report.figures)
    assert report.faults == []
    assert report.frames == FRAMES
    assert report.figures["healthy requests"] > 10


def test_a_frame_follows_from_its_seed_and_number() -> None:
    first, second, other = Mutations(7), Mutations(7), Mutations(8)
    frames = [first.frame(number) for number in range(500)]
    assert [second.frame(number) for number in reversed(range(500))] == frames[::-1]
    assert frames != [other.frame(number) for number in range(500)]
    assert len({frame.kind for frame in frames}) > 10
