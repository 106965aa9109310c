"""Handle each business event once, although retries, restarts and rebalances may deliver its message twice.

There are two ways, depending on where the listener's effect is:

1. In the same database as the table here: call ``first_time`` inside the listener's own transaction. Either both are
   committed or neither, so the effect happens exactly once.
2. Elsewhere (a mail, another service): wrap the listener with ``once``. It claims the key, runs the listener, and
   commits the claim, or releases it if the listener fails. A process that dies between the effect and the commit
   leaves a claim that expires, and the message is processed again: at-least-once, but never twice in parallel.

    claim ──> CLAIMED ── listener succeeds ───> commit  ──> DONE for ``keep_seconds``
      │          └────── it fails or says later ─> release ──> free again
      ├─────> DONE      the message is a duplicate; it counts as consumed
      └─────> BUSY      somebody is working on it; the message is delivered again later
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol

from cometmq.base.clock import SystemClock
from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.helpers.database import Connect, Connection, DatabaseThread, Table
from cometmq.client.helpers.listeners import is_async
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

KEY_CHARS_MAX: Final = 255
FORGET_EVERY: Final = 1000

KeyOf = Callable[[ReceivedMessage], str]


class Claim(Enum):
    CLAIMED = "claimed"
    DONE = "done"
    BUSY = "busy"


class ClaimStore(Protocol):
    """Where claims are kept. Called from several threads; each call must be atomic across all processes."""

    def claim(self, key: str, owner: str) -> Claim:
        """Claim the key for ``owner`` if it is free, or if the previous claim has expired."""
        ...

    def commit(self, key: str, owner: str) -> bool:
        """The work is done. False if the claim expired and somebody else has the key now."""
        ...

    def release(self, key: str, owner: str) -> None:
        """The work failed: free the key, unless somebody else has it by now."""
        ...


class TableClaims:
    """Claims in a table of a database: SQLite, or whatever ``connect`` opens.

    Args:
        lease_seconds: a claim without a commit expires after this time. Must be longer than a listener ever takes.
        keep_seconds: how long a completed key is remembered. Must be longer than a message may be retried (hours).
    """

    def __init__(
        self,
        connect: Connect,
        *,
        table: str = "cometmq_claims",
        placeholder: str = "?",
        lease_seconds: float = 900.0,
        keep_seconds: float = 7 * 24 * 3600.0,
        clock: Clock | None = None,
    ) -> None:
        if lease_seconds <= 0 or keep_seconds <= 0:
            raise UsageError("lease_seconds and keep_seconds must be above 0")
        self._table = Table(table, placeholder)
        self._database = DatabaseThread(connect, "cometmq-claims")
        self._lease_ms = round(lease_seconds * 1000)
        self._keep_ms = round(keep_seconds * 1000)
        self._clock: Clock = clock or SystemClock()
        self._claims_count = 0

    def create_table(self) -> None:
        """Create the table if it does not exist."""
        sql = (
            f"CREATE TABLE IF NOT EXISTS {{t}} (claim_key VARCHAR({KEY_CHARS_MAX}) PRIMARY KEY, "
            "state VARCHAR(8) NOT NULL, owner VARCHAR(64) NOT NULL, expires_ms BIGINT NOT NULL)"
        )
        self._database.run(lambda connection: self._table.execute(connection, sql))

    def first_time(self, connection: Connection, key: str) -> bool:
        """Mark the key as done in the caller's own transaction. False: it was done before, so do nothing.

        If two transactions have the same key at the same time, one commits and the other fails in the database; its
        message is then delivered again as a duplicate.
        """
        return self._insert(connection, _checked(key), "done", "", self._keep_ms)

    def claim(self, key: str, owner: str) -> Claim:
        key = _checked(key)
        try:
            return self._database.run(lambda connection: self._claim(connection, key, owner))
        except Exception as error:
            # Drivers raise different errors for a second insert; the row shows who was first.
            row = self._database.run(lambda connection: self._row(connection, key))
            if row is None:
                raise
            logger.debug("claim lost key=%s reason=%s", key, error)
            return Claim.DONE if row[0] == "done" else Claim.BUSY

    def commit(self, key: str, owner: str) -> bool:
        sql = "UPDATE {t} SET state = 'done', expires_ms = ? WHERE claim_key = ? AND owner = ?"
        values = (self._clock.wall_ms() + self._keep_ms, key, owner)
        return self._database.run(lambda c: self._table.execute(c, sql, values)) == 1

    def release(self, key: str, owner: str) -> None:
        sql = "DELETE FROM {t} WHERE claim_key = ? AND owner = ? AND state = 'claimed'"
        self._database.run(lambda c: self._table.execute(c, sql, (key, owner)))

    def forget_old(self) -> int:
        """Delete completed keys that have expired; claims also do this now and then."""
        now_ms = self._clock.wall_ms()
        return self._database.run(lambda connection: self._forget(connection, now_ms))

    def close(self) -> None:
        self._database.close()

    def _claim(self, connection: Connection, key: str, owner: str) -> Claim:
        now_ms = self._clock.wall_ms()
        self._claims_count += 1
        if self._claims_count % FORGET_EVERY == 0:
            self._forget(connection, now_ms)
        row = self._row(connection, key)
        if row is None:
            is_first = self._insert(connection, key, "claimed", owner, self._lease_ms)
            return Claim.CLAIMED if is_first else Claim.BUSY
        state, old_owner, expires_ms = row
        if expires_ms >= now_ms:
            return Claim.DONE if state == "done" else Claim.BUSY
        # Only one of those that see the old row changes it.
        taken = self._table.execute(
            connection,
            "UPDATE {t} SET state = 'claimed', owner = ?, expires_ms = ? "
            "WHERE claim_key = ? AND owner = ? AND expires_ms = ?",
            (owner, now_ms + self._lease_ms, key, old_owner, expires_ms),
        )
        return Claim.CLAIMED if taken == 1 else Claim.BUSY

    def _insert(
        self, connection: Connection, key: str, state: str, owner: str, time_ms: int
    ) -> bool:
        if self._row(connection, key) is not None:
            return False
        sql = "INSERT INTO {t} (claim_key, state, owner, expires_ms) VALUES (?, ?, ?, ?)"
        values = (key, state, owner, self._clock.wall_ms() + time_ms)
        self._table.execute(connection, sql, values)
        return True

    def _row(self, connection: Connection, key: str) -> tuple[str, str, int] | None:
        sql = "SELECT state, owner, expires_ms FROM {t} WHERE claim_key = ?"
        rows = self._table.query(connection, sql, (key,))
        return (str(rows[0][0]), str(rows[0][1]), int(rows[0][2])) if rows else None

    def _forget(self, connection: Connection, now_ms: int) -> int:
        sql = "DELETE FROM {t} WHERE state = 'done' AND expires_ms < ?"
        return self._table.execute(connection, sql, (now_ms,))


def first_key(message: ReceivedMessage) -> str:
    """The message's first key. Raises UsageError if it has none."""
    if not message.keys:
        raise UsageError(
            f"message {message.message_id} has no key to tell duplicates by; send it with keys=[...]"
        )
    return message.keys[0]


def once(
    store: ClaimStore, listener: Callable[[ReceivedMessage], Any], *, key: KeyOf = first_key
) -> Callable[[ReceivedMessage], Any]:
    """Wrap a listener, so that it is not called for completed keys or keys in progress. See above for guarantees.

    Args:
        listener: for single messages, def or async def.
        key: what makes two messages the same event; a business identifier rather than the message id, which differs
            if the producer itself repeats a send.
    """
    if is_async(listener):

        async def once_async(message: ReceivedMessage) -> Any:
            owner, name = uuid.uuid4().hex, key(message)
            if (answer := _answer(await asyncio.to_thread(store.claim, name, owner))) is not None:
                return answer
            try:
                returned = await listener(message)
            except BaseException:
                await asyncio.to_thread(store.release, name, owner)
                raise
            await asyncio.to_thread(_settle, store, name, owner, returned)
            return returned

        return once_async

    def once_plain(message: ReceivedMessage) -> Any:
        owner, name = uuid.uuid4().hex, key(message)
        if (answer := _answer(store.claim(name, owner))) is not None:
            return answer
        try:
            returned = listener(message)
        except BaseException:
            store.release(name, owner)
            raise
        _settle(store, name, owner, returned)
        return returned

    return once_plain


def _answer(claim: Claim) -> Outcome | None:
    """The outcome for the consumer without calling the listener; None: call it."""
    if claim is Claim.CLAIMED:
        return None
    return Outcome.consumed if claim is Claim.DONE else Outcome.later()


def _settle(store: ClaimStore, key: str, owner: str, returned: object) -> None:
    if returned is not None and returned != Outcome.consumed:
        store.release(key, owner)
    elif not store.commit(key, owner):
        logger.warning("claim expired while its listener worked key=%s; it may be done twice", key)


def _checked(key: str) -> str:
    if not key or len(key) > KEY_CHARS_MAX:
        raise UsageError(
            f"expected a key of 1 to {KEY_CHARS_MAX} characters, got one of {len(key)}"
        )
    return key
