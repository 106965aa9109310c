from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.store.files.queue_end import find_queue_end
from cometmq.store.files.queue_entry import ENTRY, FILLER

TOTAL = 3000


@pytest.mark.parametrize("count", [0, 1, 2, 204, 205, 255, 256, 257, 1500, TOTAL - 1, TOTAL])
@pytest.mark.parametrize("sparse", [True, False])
def test_the_end_is_found_wherever_it_is(tmp_path: Path, count: int, sparse: bool) -> None:
    file = SystemFiles().create(str(tmp_path / "q"), TOTAL * 20, allocate=not sparse)
    file.write_at(0, b"".join(ENTRY.pack(n * 100, 100, 7) for n in range(count)))
    end = find_queue_end(file)
    assert (end.entries, end.record_end, end.is_followed) == (count, count * 100, False)
    file.close()


@pytest.mark.parametrize("bound", [0, 1, 100, 40_050, 149_900, 150_000, 1 << 62])
def test_only_entries_of_records_below_the_bound_count(tmp_path: Path, bound: int) -> None:
    count = 1500
    file = SystemFiles().create(str(tmp_path / "q"), TOTAL * 20, allocate=False)
    file.write_at(0, b"".join(ENTRY.pack(n * 100, 100, 7) for n in range(count)))
    expected = min(-(-bound // 100), count)
    end = find_queue_end(file, bound)
    assert end.entries == expected
    assert end.is_followed == (expected < count)
    file.close()


def test_a_hole_behind_the_bound_does_not_matter(tmp_path: Path) -> None:
    file = SystemFiles().create(str(tmp_path / "q"), TOTAL * 20, allocate=False)
    file.write_at(0, b"".join(ENTRY.pack(n * 100, 100, 7) for n in range(1500)))
    file.write_at(800 * 20, bytes(400 * 20))
    assert find_queue_end(file, 79_000).entries == 790
    file.close()


def test_fillers_count_as_entries_without_a_record(tmp_path: Path) -> None:
    file = SystemFiles().create(str(tmp_path / "q"), TOTAL * 20, allocate=False)
    file.write_at(0, FILLER * 5)
    assert find_queue_end(file) == (5, 0, False)
    file.close()
