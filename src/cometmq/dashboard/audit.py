"""The record of changes: who asked for what, from where, and how it ended. Kept in a database, and told to the log."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cometmq.dashboard.bodies.operations import AuditEntry
from cometmq.dashboard.contract.route import Role

log = logging.getLogger("cometmq.dashboard")

ROWS_MAX: Final = 100_000
TEXT_CHARS_MAX: Final = 300
_PRUNE_EVERY: Final = 1000

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS changes (
    id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, user TEXT NOT NULL, role TEXT NOT NULL, peer TEXT NOT NULL,
    action TEXT NOT NULL, target TEXT NOT NULL, result TEXT NOT NULL
);
"""


class Audit:
    """Every call blocks for the disk: call it from a worker thread.

    Args:
        path: the database; None keeps it in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(
            path or ":memory:", check_same_thread=False, isolation_level=None
        )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(_TABLE)

    def add(
        self,
        *,
        at_ms: int,
        user: str,
        role: Role,
        peer: str,
        action: str,
        target: Mapping[str, Any],
        result: str,
    ) -> None:
        text = json.dumps(target, ensure_ascii=False)
        log.info(
            "change user=%s peer=%s action=%s target=%s result=%s", user, peer, action, text, result
        )
        with self._lock:
            row = at_ms, user, role.word, peer, action, text, result[:TEXT_CHARS_MAX]
            number = self._db.execute(
                "INSERT INTO changes (at_ms, user, role, peer, action, target, result) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            ).lastrowid
            if number is not None and number % _PRUNE_EVERY == 0:
                self._db.execute("DELETE FROM changes WHERE id <= ?", (number - ROWS_MAX,))

    def read(
        self, *, user: str, action: str, text: str, first: int, count: int
    ) -> tuple[list[AuditEntry], int]:
        """Newest first, and how many there are."""
        where = (
            "(? = '' OR user = ?) AND (? = '' OR action = ?) "
            "AND (? = '' OR instr(target || ' ' || result, ?) > 0)"
        )
        given = (user, user, action, action, text, text)
        with self._lock:
            total = self._db.execute(
                f"SELECT count(*) FROM changes WHERE {where}", given
            ).fetchone()
            rows = self._db.execute(
                "SELECT at_ms, user, role, peer, action, target, result FROM changes "
                f"WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*given, count, first),
            ).fetchall()
        entries = [
            AuditEntry(
                at_ms=at_ms,
                user=name,
                role=role,
                peer=peer,
                action=act,
                target=json.loads(target),
                result=result,
            )
            for at_ms, name, role, peer, act, target, result in rows
        ]
        return entries, total[0]

    def close(self) -> None:
        with self._lock:
            self._db.close()


# What is not named here is not written: a password must not get into the record because a body gained a field.
_FIELDS: Final = (
    *(
        "name",
        "topic",
        "group",
        "cluster",
        "broker",
        "confirm",
        "to",
        "time_ms",
        "offset",
        "queue_id",
    ),
    *(
        "read_queues",
        "write_queues",
        "perm",
        "order",
        "message_type",
        "enabled",
        "orderly",
        "retries",
    ),
    *(
        "to_group",
        "to_topic",
        "ids",
        "all",
        "origin",
        "allowed",
        "broker_id",
        "resource",
        "actions",
    ),
    *(
        "decision",
        "is_super",
        "kind",
        "threshold",
        "pattern",
        "rule",
        "subject",
        "minutes",
        "tags",
        "keys",
    ),
    *(
        "remove_offsets",
        "delay_ms",
        "delay_level",
        "broadcast",
        "retry_queues",
        "timeout_minutes",
        "for_seconds",
        "begin_ms",
        "end_ms",
    ),
)
NAMES_MAX: Final = 20


def target_of(names: Mapping[str, str], body: object) -> dict[str, Any]:
    """What a change is about: names in its address, and the harmless fields of its body."""
    target: dict[str, Any] = {key: value[:TEXT_CHARS_MAX] for key, value in names.items()}
    for field in _FIELDS:
        value = getattr(body, field, None)
        if value in (None, "", [], ()):
            continue
        if isinstance(value, str):
            value = value[:TEXT_CHARS_MAX]
        elif isinstance(value, list):
            value = [str(one)[:TEXT_CHARS_MAX] for one in value[:NAMES_MAX]]
        target.setdefault(field, value)
    values = getattr(body, "values", None)
    if isinstance(values, dict):
        # Keys only: a value may be a secret.
        target["settings"] = sorted(values)[:NAMES_MAX]
    return target
