"""A database connection in a dedicated thread.

Database drivers block, and many bind a connection to its thread. Here one thread opens it, uses it and closes it;
tasks await the result, threads wait for it. Any driver of Python's DB-API works: sqlite3, psycopg, PyMySQL ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

from cometmq.base.errors import UsageError

Result = TypeVar("Result")

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?\Z")


class Connection(Protocol):
    """The part of a DB-API connection that is used. It must not be in autocommit mode."""

    def cursor(self) -> Any: ...

    def commit(self) -> Any: ...

    def rollback(self) -> Any: ...

    def close(self) -> Any: ...


Connect = Callable[[], Connection]


class DatabaseThread:
    """Args:
    connect: opens a connection, for example ``lambda: sqlite3.connect("outbox.db")``.
    """

    def __init__(self, connect: Connect, name: str) -> None:
        self._connect = connect
        self._thread = ThreadPoolExecutor(1, name)
        self._connection: Connection | None = None
        self._is_closed = False

    def begin(self, work: Callable[[Connection], Result]) -> Future[Result]:
        """Start ``work`` as a transaction: committed when it returns, rolled back when it raises."""
        if self._is_closed:
            raise UsageError("the database thread is closed")
        return self._thread.submit(self._transact, work)

    def run(self, work: Callable[[Connection], Result]) -> Result:
        """Like ``begin``, and wait for the result."""
        return self.begin(work).result()

    def close(self) -> None:
        """Close the connection and stop the thread. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._thread.submit(self._drop).result()
            self._thread.shutdown()

    def _transact(self, work: Callable[[Connection], Result]) -> Result:
        if self._connection is None:
            self._connection = self._connect()
        try:
            result = work(self._connection)
            self._connection.commit()
        except BaseException:
            # If the server went away, the connection is useless; the next call opens a new one.
            self._drop()
            raise
        return result

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.rollback()
        finally:
            connection.close()


class Table:
    """SQL for one table, with the driver's way to write placeholders.

    Args:
        placeholder: ``?`` for sqlite3, ``%s`` for drivers of MySQL and PostgreSQL.
    """

    def __init__(self, name: str, placeholder: str) -> None:
        if not _NAME.match(name):
            raise UsageError(f"expected a plain table name, got {name!r}")
        if placeholder not in ("?", "%s"):
            raise UsageError(f"expected '?' or '%s' as placeholder, got {placeholder!r}")
        self._name = name
        self._placeholder = placeholder

    def execute(self, connection: Connection, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement in which ``{t}`` is the table and ``?`` a value; returns the number of rows it touched."""
        cursor = connection.cursor()
        try:
            cursor.execute(self._sql(sql), tuple(values))
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def query(
        self, connection: Connection, sql: str, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        try:
            cursor.execute(self._sql(sql), tuple(values))
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()

    def _sql(self, sql: str) -> str:
        return sql.replace("{t}", self._name).replace("?", self._placeholder)
