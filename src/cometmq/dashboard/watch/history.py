"""Figures of the last hours, in a small database: written by one thread, bounded in time, series and rows.

A value is stored when it differs from the one before, or when that one is old: what stands still costs little.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

SERIES_MAX: Final = 20_000
ROWS_MAX: Final = 4_000_000
CACHE_KIB: Final = 512
REPEAT_MS: Final = 300_000
"""A value that does not change is stored again after so long, so that a chart knows it was still there."""

Point = tuple[int, float]

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS points (
    series INTEGER NOT NULL, at_ms INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (series, at_ms)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS points_by_time ON points (at_ms);
"""


class History:
    """Every call blocks for the disk: call it from a worker thread. One call at a time; a lock sees to it.

    Args:
        path: the database; None keeps it in memory.
    """

    def __init__(self, path: Path | None, *, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._lock = threading.Lock()
        self._ids: dict[str, int] = {}
        self._last: dict[str, Point] = {}
        self._db = sqlite3.connect(
            path or ":memory:", check_same_thread=False, isolation_level=None
        )
        self._db.execute("PRAGMA journal_mode = WAL")
        # A crash of the machine may cost the last figures, which is fine for charts.
        self._db.execute("PRAGMA synchronous = NORMAL")
        # A chart reads a few rows that lie together; 2 MB of pages in memory would not make it faster.
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._db.executescript(_TABLES)
        self._ids.update(self._db.execute("SELECT name, id FROM series"))

    def add(self, at_ms: int, values: Mapping[str, float]) -> None:
        """The values of one round, by series."""
        with self._lock:
            rows = list(self._changed(at_ms, values))
            self._db.execute("BEGIN")
            try:
                self._db.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?)", rows)
            finally:
                self._db.execute("COMMIT")

    def prune(self, now_ms: int) -> None:
        """Forget what is too old or too much."""
        with self._lock:
            oldest = now_ms - self._keep_ms
            count = self._db.execute("SELECT count(*) FROM points").fetchone()[0]
            if count > ROWS_MAX:
                newer = self._db.execute(
                    "SELECT at_ms FROM points ORDER BY at_ms DESC LIMIT 1 OFFSET ?", (ROWS_MAX,)
                ).fetchone()
                oldest = max(oldest, newer[0])
            self._db.execute("DELETE FROM points WHERE at_ms < ?", (oldest,))
            self._db.execute(
                "DELETE FROM series WHERE id NOT IN (SELECT DISTINCT series FROM points)"
            )
            self._ids = dict(self._db.execute("SELECT name, id FROM series"))
            self._last = {name: last for name, last in self._last.items() if name in self._ids}

    def read(
        self, names: Sequence[str], since_ms: int, now_ms: int, count: int
    ) -> list[list[Point]]:
        """At most ``count`` points of each series, evenly spread: the largest value of each part of the time."""
        with self._lock:
            return [self._series(name, since_ms, now_ms, count) for name in names]

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _changed(self, at_ms: int, values: Mapping[str, float]) -> Iterable[tuple[int, int, float]]:
        for name, value in values.items():
            last = self._last.get(name)
            if last is not None and last[1] == value and at_ms - last[0] < REPEAT_MS:
                continue
            number = self._id(name)
            if number is None:
                continue
            if last is not None and last[1] != value and at_ms - last[0] > REPEAT_MS // 10:
                # Where it was flat until now, a chart must not draw a slope.
                yield number, at_ms - 1, last[1]
            self._last[name] = at_ms, value
            yield number, at_ms, value

    def _id(self, name: str) -> int | None:
        """None if there are too many series already."""
        known = self._ids.get(name)
        if known is None and len(self._ids) < SERIES_MAX:
            known = self._db.execute("INSERT INTO series (name) VALUES (?)", (name,)).lastrowid
            assert known is not None
            self._ids[name] = known
        return known

    def _series(self, name: str, since_ms: int, now_ms: int, count: int) -> list[Point]:
        number = self._ids.get(name)
        if number is None:
            return []
        width = max((now_ms - since_ms) // count, 1)
        # The part before the first one that is wanted tells where the line begins.
        before = self._db.execute(
            "SELECT at_ms, value FROM points WHERE series = ? AND at_ms < ? ORDER BY at_ms DESC LIMIT 1",
            (number, since_ms),
        ).fetchone()
        rows: list[Point] = self._db.execute(
            "SELECT max(at_ms), max(value) FROM points WHERE series = ? AND at_ms BETWEEN ? AND ? "
            "GROUP BY (at_ms - ?) / ? ORDER BY at_ms",
            (number, since_ms, now_ms, since_ms, width),
        ).fetchall()
        return ([(since_ms, before[1])] if before else []) + rows
