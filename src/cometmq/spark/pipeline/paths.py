"""Where files of a pipeline are, seen from Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cometmq.spark.pipeline.definition import Pipeline

_PATH_OPTIONS: Final = ("path",)


def located(pipeline: Pipeline, path: str) -> str:
    """A relative path of a local run made absolute: what Spark was started from need not be where we are.

    On a cluster it is left alone; there it means a place in the cluster's own file system.
    """
    if "://" in path or not pipeline.master.startswith("local"):
        return path
    return str(Path(path).absolute())


def located_options(
    pipeline: Pipeline, format_name: str, options: Mapping[str, str]
) -> dict[str, str]:
    if format_name == "rocketmq":
        return dict(options)
    return {
        key: located(pipeline, value) if key in _PATH_OPTIONS else value
        for key, value in options.items()
    }
