"""Progress of a run, from reports as Spark writes them."""

from __future__ import annotations

import io
import json
from typing import Any

from cometmq.spark.pipeline.progress import Terminal, Totals, batch_line, batch_of, behind_text, lag

DONE = {"Orders": {"a": {"0": 5, "1": 9}}}
LATEST = {"Orders": {"a": {"0": 7, "1": 9}, "b": {"0": 3}}}


def report(batch_id: int, rows: int, written: int | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "batchId": batch_id,
        "numInputRows": rows,
        "processedRowsPerSecond": 1234.5,
        "durationMs": {"triggerExecution": 250},
        "sources": [{"endOffset": DONE, "latestOffset": json.dumps(LATEST)}],
        "stateOperators": [{"numRowsDroppedByWatermark": 2}],
    }
    if written is not None:
        value["observedMetrics"] = {"rows_written": {"rows_written": written}}
    return value


def test_lag_by_queue() -> None:
    assert lag(DONE, LATEST) == {"Orders a/0": 2, "Orders a/1": 0, "Orders b/0": 3}


def test_offsets_of_other_sources_have_no_lag() -> None:
    assert lag({"logOffset": 3}, {"logOffset": 5}) == {}
    assert lag("17", "18") == {}
    assert lag(None, None) == {}
    assert lag("no json", "no json") == {}


def test_a_line_tells_rate_time_and_lag() -> None:
    assert batch_line("q", batch_of(report(3, 1000, 990))) == (
        "q: batch 3, 1,000 rows read, 990 written, 1,234 rows/s, 0.25 s, 5 behind (Orders b/0 3, Orders a/0 2)"
    )


def test_only_the_worst_queues_are_named() -> None:
    text = behind_text({f"t b/{queue}": queue for queue in range(10)})
    assert text.startswith(", 45 behind (t b/9 9, t b/8 8, ")
    assert text.endswith(", 3 more queues)")
    assert behind_text({"t b/0": 0}) == ", nothing behind"


def test_totals_count_each_batch_once() -> None:
    totals = Totals("q")
    assert totals.summary() == "q: nothing new since the last run"
    assert totals.add(report(0, 10, 4)) is not None
    assert totals.add(report(0, 10, 4)) is None
    assert totals.add(report(1, 0)) is None
    assert totals.add(report(1, 1, 1)) is not None
    assert totals.summary() == (
        "q: 11 rows read, 5 rows written, 4 rows too late, 2 batches in 0.5 s"
    )


def test_a_report_without_figures() -> None:
    batch = batch_of({"batchId": 0, "processedRowsPerSecond": None})
    assert (batch.rows_read, batch.seconds, batch.rows_written) == (0, 0.0, None)


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_written_over_and_a_file_is_not() -> None:
    totals = {"q": Totals("q")}
    totals["q"].add(report(0, 10))
    screen, file, quiet = Tty(), io.StringIO(), io.StringIO()
    for stream, is_quiet in ((screen, False), (file, False), (quiet, True)):
        terminal = Terminal(stream, is_quiet=is_quiet)
        terminal.line("running")
        terminal.batch("q", batch_of(report(0, 10)))
        terminal.redraw(totals)
        terminal.redraw(totals)
    assert screen.getvalue().count("\x1b[2Kq: batch 0") == 2
    assert screen.getvalue().count("\x1b[1A") == 1
    assert file.getvalue().splitlines()[1].startswith("q: batch 0, 10 rows read, 1,234 rows/s")
    assert len(file.getvalue().splitlines()) == 2
    assert quiet.getvalue() == ""
