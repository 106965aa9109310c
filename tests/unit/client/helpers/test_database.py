"""One thread, one connection, one transaction at a time."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.helpers.database import Connection, DatabaseThread, Table


def test_all_work_is_done_by_one_thread_on_one_connection(tmp_path: Path) -> None:
    opened: list[int] = []

    def connect() -> sqlite3.Connection:
        opened.append(threading.get_ident())
        # Raises when another thread uses it.
        return sqlite3.connect(tmp_path / "x.db", check_same_thread=True)

    database = DatabaseThread(connect, "test")
    table = Table("t", "?")
    database.run(lambda c: table.execute(c, "CREATE TABLE {t} (n INTEGER)"))

    def insert() -> None:
        database.run(lambda c: table.execute(c, "INSERT INTO {t} VALUES (?)", (1,)))

    threads = [threading.Thread(target=insert) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.run(lambda c: table.query(c, "SELECT SUM(n) FROM {t}")) == [(8,)]
    assert len(opened) == 1
    assert opened[0] != threading.get_ident()
    database.close()
    database.close()
    with pytest.raises(UsageError, match="closed"):
        database.run(lambda c: None)


def test_failed_work_is_rolled_back_and_the_next_gets_a_new_connection(tmp_path: Path) -> None:
    opened: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        opened.append(sqlite3.connect(tmp_path / "x.db"))
        return opened[-1]

    database = DatabaseThread(connect, "test")
    table = Table("t", "?")
    database.run(lambda c: table.execute(c, "CREATE TABLE {t} (n INTEGER)"))

    def fail(connection: Connection) -> None:
        table.execute(connection, "INSERT INTO {t} VALUES (?)", (1,))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        database.run(fail)
    assert database.run(lambda c: table.query(c, "SELECT COUNT(*) FROM {t}")) == [(0,)]
    assert len(opened) == 2
    database.close()


class RecordingCursor:
    rowcount = 1

    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def execute(self, sql: str, values: tuple[Any, ...]) -> None:
        self._log.append((sql, values))

    def fetchall(self) -> list[Any]:
        return [["a", 1]]

    def close(self) -> None:
        self._log.append("closed")


class RecordingConnection:
    def __init__(self) -> None:
        self.log: list[Any] = []

    def cursor(self) -> RecordingCursor:
        return RecordingCursor(self.log)

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


def test_drivers_with_another_placeholder_get_theirs() -> None:
    connection = RecordingConnection()
    table = Table("app.box", "%s")
    assert table.execute(connection, "DELETE FROM {t} WHERE a = ? AND b = ?", ("x", 2)) == 1
    assert table.query(connection, "SELECT a, b FROM {t}") == [("a", 1)]
    assert connection.log == [
        ("DELETE FROM app.box WHERE a = %s AND b = %s", ("x", 2)),
        "closed",
        ("SELECT a, b FROM app.box", ()),
        "closed",
    ]


def test_names_and_placeholders_are_checked() -> None:
    for name in ("", "a b", "a;b", "a.b.c", "1a"):
        with pytest.raises(UsageError, match="table name"):
            Table(name, "?")
    with pytest.raises(UsageError, match="placeholder"):
        Table("t", ":1")
