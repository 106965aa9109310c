from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.base import logs
from cometmq.base.errors import ConfigError
from cometmq.base.log_rates import LogLimits


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


def test_a_label_tells_processes_apart(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(label="standalone-2")
    logging.getLogger("cometmq.broker").info("store opened")
    assert capsys.readouterr().err.endswith(" INFO cometmq.broker[standalone-2] store opened\n")


def test_a_file_rotates_by_size_and_count(tmp_path: Path) -> None:
    file = tmp_path / "namesrv.log"
    logs.configure(file=str(file), file_bytes_max=200, file_count=2)
    for number in range(20):
        logging.getLogger("cometmq.test").info("event number=%d", number)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["namesrv.log", "namesrv.log.1", "namesrv.log.2"]
    assert "number=19" in file.read_text()
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())


def test_a_line_has_a_length_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(limits=LogLimits(line_chars_max=200))
    logging.getLogger("cometmq.test").info("event name=%s", "\n" * 100_000)
    line = capsys.readouterr().err
    assert len(line) < 300
    assert re.search(r"\.\.\. and \d+ characters more\n$", line)
    try:
        raise ValueError("x" * 1_000_000)
    except ValueError:
        logging.getLogger("cometmq.test").exception("failed")
    assert len(capsys.readouterr().err) < 2 * logs.TRACEBACK_CHARS_MAX


def test_lines_left_out_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(limits=LogLimits(lines_per_peer_max=5))
    for number in range(8):
        logging.getLogger("cometmq.test").info(f"event {number} peer=%s", "10.0.0.7:1")
    assert capsys.readouterr().err.count("event") == 5
    assert logs.left_out_count() == 3


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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("red\x1b[31m", "red\\x1b[31m"),
        ("a\tb\rc\x00d\x7f", "a\\tb\\rc\\x00d\\x7f"),
        ("next\x85line \u2028 and \u2029", "next\\x85line \\u2028 and \\u2029"),
        ("right\u202eto left", "right\\u202eto left"),
        ("half \ud83d", "half \\ud83d"),
        ("größe 数据 😀", "größe 数据 😀"),
    ],
)
def test_characters_that_steer_a_terminal_are_escaped(
    tmp_path: Path, text: str, written: str
) -> None:
    file = tmp_path / "broker.log"
    logs.configure(file=str(file))
    logging.getLogger("cometmq.test").info("event name=%s", text)
    assert file.read_bytes().decode().endswith(f" INFO cometmq.test event name={written}\n")


def test_no_line_of_a_traceback_can_be_taken_for_an_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure()
    try:
        raise ValueError("bad\n2026-01-01T00:00:00.000Z INFO cometmq.broker forged\x1b[2J")
    except ValueError:
        logging.getLogger("cometmq.test").exception("event")
    first, *others = capsys.readouterr().err.splitlines()
    assert first.endswith("ERROR cometmq.test event")
    assert others
    assert all(line.startswith("  ") for line in others)
    assert others[-1].endswith("forged\\x1b[2J")


def test_what_one_peer_causes_is_written_at_a_rate_and_then_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure()
    logger = logging.getLogger("cometmq.test")
    for port in range(5000):
        logger.warning("connection closed peer=%s reason=%s", f"10.0.0.7:{port}", "bad frame")
    logger.warning("connection closed peer=%s reason=%s", "10.0.0.8:1", "bad frame")
    logger.warning("other cause peer=%s", "10.0.0.7:1")
    logs.tell_left_out()
    written = capsys.readouterr().err
    assert written.count("peer=10.0.0.7:") <= 40
    assert "peer=10.0.0.8:1" in written
    assert "other cause" in written
    (told,) = [line for line in written.splitlines() if "log lines left out" in line]
    kept = written.count("connection closed peer=10.0.0.7:")
    assert f"count={5000 - kept} peers=10.0.0.7 " in told
    assert "cause='connection closed peer=%s reason=%s'" in told
    logs.tell_left_out()
    assert capsys.readouterr().err == ""


def test_what_was_left_out_is_told_with_the_next_line_of_any_cause(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(logs, "monotonic", lambda: now)
    logs.configure()
    logger = logging.getLogger("cometmq.test")
    for _ in range(100):
        logger.warning("refused by=%s", "10.0.0.7:1")
    now += logs.TELL_SECONDS + 1
    logger.info("all is well")
    assert "log lines left out count=80 peers=10.0.0.7 " in capsys.readouterr().err


def test_debug_lines_are_written_all(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("DEBUG")
    for number in range(500):
        logging.getLogger("cometmq.test").debug("reply dropped number=%d", number)
    assert capsys.readouterr().err.count("reply dropped") == 500


def test_metrics_are_written_whole_and_all(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(limits=LogLimits(line_chars_max=200))
    for _ in range(100):
        logging.getLogger(logs.METRICS).info("%s", "x" * 1000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 100
    assert all(line.endswith("x" * 1000) for line in lines)
