"""One page, worked through by a reader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.docs.broker_state import broker_state, faults_between
from tests.docs.page_steps import Program, Session, Step, steps_of
from tests.docs.reader import Reader


def quick_steps(page: Path) -> list[Step]:
    """Those of a page that do not start Spark. None of a page on pipelines, where most do."""
    text = page.read_text()
    if "\n$ cometmq pipeline run" in text:
        return []
    return [step for step in steps_of(text) if not _needs_spark(step)]


def work_through(
    page: Path, steps: list[Step], reader: Reader, *, has_numbers: bool = True
) -> None:
    """Raises AssertionError where the page and what happens differ, or where it is in the way of the next page."""
    if "n an empty directory" in page.read_text():
        directory = reader.directory / page.stem
        directory.mkdir()
        reader = replace(reader, directory=directory)
    before = broker_state(reader.name_server, reader.broker)
    for step in steps:
        reader.take(step, has_numbers=has_numbers)
    faults = faults_between(before, broker_state(reader.name_server, reader.broker))
    assert not faults, f"{page.name}: {'; '.join(faults)}"


def _needs_spark(step: Step) -> bool:
    return isinstance(step, Session) or (isinstance(step, Program) and "pyspark" in step.text)
