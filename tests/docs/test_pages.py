"""A reader works through the README and all pages, in the order of docs/README.md, on one ``cometmq up``.

What starts Spark takes its time: ``make spark`` works through all pages with that, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.page_steps import ROOT, Program, pages, steps_of
from tests.docs.page_walk import quick_steps, work_through
from tests.docs.reader import Reader, reader


def quick_programs(page: Path) -> list[Program]:
    return [step for step in quick_steps(page) if isinstance(step, Program)]


PAGES = [page for page in pages() if steps_of(page.read_text())]
QUICK = [page for page in PAGES if quick_steps(page)]
LATER = [
    pytest.param(program, id=f"{page.stem}-{number}")
    for page in QUICK
    for number, program in enumerate(quick_programs(page)[1:], 2)
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def one_reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reader(tmp_path_factory.mktemp("reader")) as one:
        yield one


@pytest.fixture(scope="module")
def another_reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reader(tmp_path_factory.mktemp("reader")) as another:
        yield another


@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_blocks_run_and_print_what_the_page_says(page: Path, one_reader: Reader) -> None:
    work_through(page, quick_steps(page), one_reader)


@pytest.mark.parametrize("program", LATER)
def test_later_programs_of_a_page_run_alone(program: Program, another_reader: Reader) -> None:
    another_reader.take(program)


def test_every_page_with_blocks_is_in_the_table_of_contents() -> None:
    written = [page for page in (ROOT / "docs").rglob("*.md") if steps_of(page.read_text())]
    assert sorted(set(written) - set(PAGES)) == []
    assert len(PAGES) > 30
