"""Every option is tried in a Spark session: on ``local[2]``, and on executors of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cometmq.spark.errors import BadOption
from cometmq.spark.log.log_options import read_log_options
from cometmq.spark.sink.sink_options import read_sink_options
from cometmq.spark.source.source_options import read_source_options

SESSIONS = Path(__file__).parents[2] / "spark"
# What is loaded from or saved to comes as this option.
NOT_BY_NAME = {"path"}


@pytest.mark.parametrize(
    ("read", "files"),
    [
        (read_source_options, ["source_batch", "source_stream", "connection_options"]),
        (read_log_options, ["log_source"]),
        (read_sink_options, ["sink", "connection_options"]),
    ],
)
def test_every_option_is_tried(
    tmp_path: Path, read: Callable[[Mapping[str, str]], Any], files: list[str]
) -> None:
    (tmp_path / "commitlog").mkdir()
    place = {"path": str(tmp_path)} if read is read_log_options else {"nameServers": "a:1"}
    with pytest.raises(BadOption, match="unknown option") as caught:
        read({**place, "topic": "T", "nobodyKnows": "this"})
    names = str(caught.value).partition("there are ")[2].split(", ")
    assert "topic" in names

    paths = [SESSIONS / f"test_{file}.py" for file in files] + [SESSIONS / "tls_servers.py"]
    tried = set(re.findall(r"\w+(?:\.\w+)*", " ".join(path.read_text() for path in paths)))
    assert set(names) - tried - NOT_BY_NAME == set()

    on_executors = (SESSIONS / "long" / "test_executors.py").read_text()
    assert [file for file in files if f'"{file}"' not in on_executors] == []
