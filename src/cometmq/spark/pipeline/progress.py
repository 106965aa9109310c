"""How a run is getting on, from what Spark reports after each batch. Pure but for ``Terminal``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from cometmq.spark.pipeline.sinks import ROWS_WRITTEN

_QUEUES_SHOWN_MAX: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch. ``behind`` counts messages that are still to be read, by queue."""

    batch_id: int
    rows_read: int
    rows_written: int | None
    rows_per_second: float
    seconds: float
    rows_too_late: int = 0
    behind: Mapping[str, int] = field(default_factory=dict)


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """What matters in a progress report of Spark."""
    behind: dict[str, int] = {}
    for source in progress.get("sources", []):
        behind |= lag(source.get("endOffset"), source.get("latestOffset"))
    written = progress.get("observedMetrics", {}).get(ROWS_WRITTEN)
    return Batch(
        batch_id=int(progress["batchId"]),
        rows_read=int(progress.get("numInputRows", 0)),
        rows_written=None if written is None else int(written.get(ROWS_WRITTEN, 0)),
        rows_per_second=_number(progress.get("processedRowsPerSecond")),
        seconds=_number(progress.get("durationMs", {}).get("triggerExecution")) / 1000,
        rows_too_late=sum(
            int(state.get("numRowsDroppedByWatermark", 0))
            for state in progress.get("stateOperators", [])
        ),
        behind=behind,
    )


def lag(done: Any, latest: Any) -> dict[str, int]:
    """Messages between two offsets of a topic source, by "topic broker/queue"; nothing for other sources."""
    done, latest = _offsets(done), _offsets(latest)
    return {
        f"{topic} {broker}/{queue}": max(0, end - done.get(topic, {}).get(broker, {}).get(queue, 0))
        for topic, by_broker in latest.items()
        for broker, by_queue in by_broker.items()
        for queue, end in by_queue.items()
    }


class Totals:
    """What a query has done since it was started."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.batch_count = 0
        self.rows_read = 0
        self.rows_written: int | None = None
        self.rows_too_late = 0
        self.seconds = 0.0
        self.last: Batch | None = None
        self.last_batch_id = -1

    def add(self, progress: Mapping[str, Any]) -> Batch | None:
        """Take a report in; the batch if it is a new one that had rows. Reports may come again."""
        batch = batch_of(progress)
        self.last = batch
        if batch.batch_id <= self.last_batch_id:
            return None
        if not batch.rows_read and not batch.rows_written:
            # Between batches Spark reports the next one's number, with no rows: those before it are through.
            self.last_batch_id = batch.batch_id - 1
            return None
        self.last_batch_id = batch.batch_id
        self.batch_count += 1
        self.rows_read += batch.rows_read
        self.rows_too_late += batch.rows_too_late
        self.seconds += batch.seconds
        if batch.rows_written is not None:
            self.rows_written = (self.rows_written or 0) + batch.rows_written
        return batch

    def summary(self) -> str:
        batches = "1 batch" if self.batch_count == 1 else f"{self.batch_count:,} batches"
        if not self.batch_count:
            return f"{self.name}: nothing new since the last run"
        written = "" if self.rows_written is None else f", {_rows(self.rows_written)} written"
        late = f", {_rows(self.rows_too_late)} too late" if self.rows_too_late else ""
        read = f"{_rows(self.rows_read)} read"
        return f"{self.name}: {read}{written}{late}, {batches} in {self.seconds:.1f} s"


def batch_line(name: str, batch: Batch) -> str:
    written = "" if batch.rows_written is None else f", {batch.rows_written:,} written"
    return (
        f"{name}: batch {batch.batch_id}, {_rows(batch.rows_read)} read{written}, "
        f"{batch.rows_per_second:,.0f} rows/s, {batch.seconds:.2f} s{behind_text(batch.behind)}"
    )


def behind_text(behind: Mapping[str, int]) -> str:
    """The lag in all, and of the queues that are furthest behind."""
    if not behind:
        return ""
    total = sum(behind.values())
    if not total:
        return ", nothing behind"
    worst = sorted(
        (item for item in behind.items() if item[1]), key=lambda item: (-item[1], item[0])
    )
    shown = ", ".join(f"{queue} {count:,}" for queue, count in worst[:_QUEUES_SHOWN_MAX])
    more = len(worst) - _QUEUES_SHOWN_MAX
    return f", {total:,} behind ({shown}{f', {more} more queues' if more > 0 else ''})"


class Terminal:
    """Writes the state of all queries: over itself in a terminal, a line for each batch elsewhere."""

    def __init__(self, stream: TextIO, *, is_quiet: bool) -> None:
        self._stream = stream
        self._is_quiet = is_quiet
        self._is_live = stream.isatty()
        self._line_count = 0

    def batch(self, name: str, batch: Batch) -> None:
        if not self._is_quiet and not self._is_live:
            self._write(batch_line(name, batch) + "\n")

    def redraw(self, totals: Mapping[str, Totals]) -> None:
        if self._is_quiet or not self._is_live:
            return
        width = shutil.get_terminal_size().columns
        lines = [
            _cut(batch_line(each.name, each.last) if each.last else f"{each.name}: starting", width)
            for each in totals.values()
        ]
        up = f"\x1b[{self._line_count}A" if self._line_count else ""
        self._write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        self._line_count = len(lines)

    def line(self, text: str) -> None:
        """A line that stays."""
        if not self._is_quiet:
            self._write(text + "\n")
            self._line_count = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


Report = Callable[[str, Batch], None]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _offsets(value: Any) -> dict[str, dict[str, dict[str, int]]]:
    """Offsets as our source writes them; those of other sources are none of our business."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, dict):
        return {}
    is_ours = all(
        isinstance(by_broker, dict) and all(isinstance(each, dict) for each in by_broker.values())
        for by_broker in value.values()
    )
    return value if is_ours else {}
