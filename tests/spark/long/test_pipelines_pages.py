"""The pages of the pipelines that come along: each is worked through as a reader would, command by command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.pages import ROOT, work_through

from cometmq.spark.pipeline.shipped import shipped

PAGES = ["pipelines.md", *(f"pipeline-{name}.md" for name in shipped())]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_page(tmp_path: Path, page: str) -> None:
    # How long a send took is not known beforehand.
    work_through(page, tmp_path, has_numbers=page != "pipeline-trace-analytics.md")


def test_every_pipeline_has_a_page() -> None:
    pages = {path.name for path in (ROOT / "docs" / "howto").glob("pipeline-*.md")}
    assert pages == {f"pipeline-{name}.md" for name in shipped()}
