"""A reader works through all pages, those of pipelines included, in their order, on one ``cometmq up``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.page_steps import ROOT, pages, steps_of
from tests.docs.page_walk import work_through
from tests.docs.reader import Reader, reader

from cometmq.spark.pipeline.shipped import shipped

PAGES = [page for page in pages() if steps_of(page.read_text())]
# How long a send took is not known beforehand.
MEASURED = {"pipeline-trace-analytics.md"}


@pytest.fixture(scope="module")
def one_reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reader(tmp_path_factory.mktemp("reader")) as one:
        yield one


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, one_reader: Reader) -> None:
    steps = steps_of(page.read_text())
    work_through(page, steps, one_reader, has_numbers=page.name not in MEASURED)


def test_every_pipeline_has_a_page() -> None:
    written = {path.name for path in (ROOT / "docs" / "howto").glob("pipeline-*.md")}
    assert written == {f"pipeline-{name}.md" for name in shipped()}
