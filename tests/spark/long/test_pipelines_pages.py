"""The pages of the pipelines that come along: each is worked through as a reader would, against a broker of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.pages import ROOT, work_through

from cometmq.spark.pipeline.shipped import shipped
from cometmq.testing import cluster

PAGES = ["pipelines.md", *(f"pipeline-{name}.md" for name in shipped())]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_page(spark: Any, tmp_path: Path, page: str) -> None:
    settings = {"traceTopicEnable": "true"}
    with cluster(settings=settings, data_directory=str(tmp_path / "mq")) as servers:
        # How long a send took is not known beforehand.
        has_numbers = page != "pipeline-trace-analytics.md"
        work_through(page, tmp_path, servers.name_servers, has_numbers=has_numbers)


def test_every_pipeline_has_a_page() -> None:
    pages = {path.name for path in (ROOT / "docs" / "howto").glob("pipeline-*.md")}
    assert pages == {f"pipeline-{name}.md" for name in shipped()}
