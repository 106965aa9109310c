"""Messages waiting in a database table to be sent, in order. ``outbox`` sends them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import msgspec

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError, UsageError
from cometmq.base.ports import Clock
from cometmq.client.helpers.database import Connection, Table
from cometmq.model.messages.message import Message

REASON_CHARS_MAX: Final = 500

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Message)


class OutboxFull(CometError):
    """The maximum number of messages is waiting; ``__cause__``, if set, is why this one could not be sent at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A waiting message. ``place`` orders them."""

    place: str
    message: Message


class OutboxTable:
    """The SQL of an outbox; every call uses the caller's connection and transaction.

    Args:
        placeholder: ``?`` for sqlite3, ``%s`` for drivers of MySQL and PostgreSQL.
        count_max: maximum number of waiting messages.
    """

    def __init__(
        self,
        *,
        table: str = "cometmq_outbox",
        placeholder: str = "?",
        count_max: int = 100_000,
        clock: Clock | None = None,
    ) -> None:
        if count_max < 1:
            raise UsageError(f"count_max must be at least 1, not {count_max}")
        self._table = Table(table, placeholder)
        self._count_max = count_max
        self._clock: Clock = clock or SystemClock()
        self._numbers = itertools.count()
        self._last_ms = 0

    def create(self, connection: Connection, *, text_type: str = "TEXT") -> None:
        """Create the table if it does not exist. MySQL needs ``LONGTEXT`` for messages above 64 KiB."""
        if not text_type.isidentifier():
            raise UsageError(f"expected a type name such as TEXT, got {text_type!r}")
        self._table.execute(
            connection,
            "CREATE TABLE IF NOT EXISTS {t} (place VARCHAR(64) PRIMARY KEY, "
            f"message {text_type} NOT NULL, refused VARCHAR({REASON_CHARS_MAX}))",
        )

    def add(self, connection: Connection, message: Message) -> str:
        """Add a message at the end; it is sent if and when the caller's transaction is committed.

        Raises:
            OutboxFull: too many are waiting.
        """
        if self.count(connection) >= self._count_max:
            raise OutboxFull(f"{self._count_max} messages wait in the outbox, which is the bound")
        place = self._next_place(connection)
        text = _encoder.encode(_storable(message)).decode()
        sql = "INSERT INTO {t} (place, message) VALUES (?, ?)"
        self._table.execute(connection, sql, (place, text))
        return place

    def oldest(self, connection: Connection, count_max: int) -> list[Waiting]:
        """The messages to send next, in order."""
        sql = "SELECT place, message FROM {t} WHERE refused IS NULL ORDER BY place"
        rows = self._table.query(connection, f"{sql} LIMIT {int(count_max)}")
        return [Waiting(place=row[0], message=_decoder.decode(row[1])) for row in rows]

    def count(self, connection: Connection) -> int:
        """How many are waiting, without refused ones."""
        [[count]] = self._table.query(connection, "SELECT COUNT(*) FROM {t} WHERE refused IS NULL")
        return int(count)

    def remove(self, connection: Connection, place: str) -> None:
        self._table.execute(connection, "DELETE FROM {t} WHERE place = ?", (place,))

    def refuse(self, connection: Connection, place: str, reason: str) -> None:
        """Set a message aside that can never be sent, out of the way of the others."""
        sql = "UPDATE {t} SET refused = ? WHERE place = ?"
        self._table.execute(connection, sql, (reason[:REASON_CHARS_MAX], place))

    def refused(self, connection: Connection) -> list[tuple[Waiting, str]]:
        """Messages that can never be sent, each with the reason."""
        sql = "SELECT place, message, refused FROM {t} WHERE refused IS NOT NULL ORDER BY place"
        return [
            (Waiting(place=place, message=_decoder.decode(text)), reason)
            for place, text, reason in self._table.query(connection, sql)
        ]

    def _next_place(self, connection: Connection) -> str:
        """A string that sorts after all existing ones, whatever the wall clock does."""
        [[last]] = self._table.query(connection, "SELECT MAX(place) FROM {t}")
        last_ms = int(last[:16]) if last else 0
        self._last_ms = max(self._clock.wall_ms(), self._last_ms, last_ms)
        if last_ms == self._last_ms:
            # After those of other processes in the same millisecond.
            number = max(next(self._numbers), int(last[17:33]) + 1)
            self._numbers = itertools.count(number + 1)
        else:
            number = next(self._numbers)
        return f"{self._last_ms:016d}-{number:016d}"


def _storable(message: Message) -> Message:
    """Keys may be any iterable; the table stores a list."""
    keys = message.keys
    return msgspec.structs.replace(message, keys=keys.split() if isinstance(keys, str) else [*keys])
