"""What SIGUSR1 writes down."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.monitor import dump as module
from cometmq.monitor.dump import LINES_MAX, dump, dump_lines


def facts() -> Iterator[str]:
    yield "one"
    yield "two"


def broken() -> Iterator[str]:
    yield "before"
    raise ValueError("no")


async def test_it_names_subjects_and_tasks() -> None:
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(waits_for_ever()) for _ in range(3)]
    await asyncio.sleep(0)
    lines = dump_lines({"a": facts})
    assert lines[:3] == ["[a]", "one", "two"]
    assert "[tasks]" in lines
    [place] = [line for line in lines if "waits_for_ever" in line]
    assert place.startswith("3 x ")
    assert "test_dump.py:" in place
    for task in tasks:
        task.cancel()


async def test_what_goes_wrong_is_told_in_its_place() -> None:
    lines = dump_lines({"a": broken, "b": facts})
    assert lines[:5] == ["[a]", "before", "not told: ValueError('no')", "[b]", "one"]


async def test_each_subject_is_bounded() -> None:
    lines = dump_lines({"a": lambda: iter(["x" * 9999] * 9999)})
    assert lines.index("[tasks]") == LINES_MAX + 1
    assert len(lines[1]) == module.LINE_CHARACTERS_MAX


async def test_a_file_is_for_its_owner_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    dump({"a": facts}, str(path))
    dump({"a": facts}, str(path))
    assert path.read_text().count("[a]") == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE_BYTES_MAX", 10)
    path = tmp_path / "dump.txt"
    dump({"a": facts}, str(path))
    dump({"b": facts}, str(path))
    assert "[a]" not in path.read_text()


async def test_no_link_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "dump.txt").symlink_to(tmp_path / "other")
    dump({"a": facts}, str(tmp_path / "dump.txt"))
    assert "dump not written" in caplog.text
    assert not (tmp_path / "other").exists()


async def test_without_a_file_its_beginning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    dump({"a": facts, "b": lambda: iter(["x"] * 99)}, "")
    assert caplog.messages[0] == "dump [a]"
    assert len(caplog.messages) == module.LOG_LINES_MAX + 1
    assert "set dumpPath" in caplog.messages[-1]
