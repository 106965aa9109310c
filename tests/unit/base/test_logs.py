from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.base import logs
from cometmq.base.errors import ConfigError


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers = []
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level


def test_one_event_is_one_line_with_utc_time(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    logging.getLogger("cometmq.test").info("event name=%s", "forged\nERROR line")
    logging.getLogger("cometmq.test").debug("not shown")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO cometmq\.test event name=forged\\nERROR line\n",
        capsys.readouterr().err,
    )


def test_time_is_utc() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "m", None, None)
    record.created, record.msecs = 1700000000.25, 250.0
    assert logs.LineFormatter().format(record) == "2023-11-14T22:13:20.250Z INFO x m"


def test_a_file_rotates_by_size_and_count(tmp_path: Path) -> None:
    file = tmp_path / "namesrv.log"
    logs.configure(file=str(file), file_bytes_max=200, file_count=2)
    for number in range(20):
        logging.getLogger("cometmq.test").info("event number=%d", number)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["namesrv.log", "namesrv.log.1", "namesrv.log.2"]
    assert "number=19" in file.read_text()
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())


def test_configuring_again_replaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(file=str(tmp_path / "a.log"))
    logs.configure()
    logging.getLogger("cometmq.test").info("event")
    assert capsys.readouterr().err.count("event") == 1
    assert (tmp_path / "a.log").read_text() == ""


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="LOUD"):
        logs.configure("LOUD")
    with pytest.raises(ConfigError, match="cannot be written"):
        logs.configure(file=str(tmp_path / "missing" / "a.log"))
