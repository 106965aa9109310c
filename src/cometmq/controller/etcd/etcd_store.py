"""Decisions in etcd: one key for each group, compare-and-swap by its revision. Any number of controllers may share it.

What others have stored is looked for every second (``etcd_side``); what a decision stands on is read anew. Whoever can
write to etcd can write anything, so each value is checked like a file. While etcd cannot be used, ``known`` is what
this controller knew last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from cometmq.base.errors import StoreError
from cometmq.controller.decision_store import Held, StoreAway
from cometmq.controller.etcd import etcd_words as words
from cometmq.controller.etcd.endpoint import EtcdRefused
from cometmq.controller.etcd.etcd_words import KeyValue, TxnReply, Words
from cometmq.controller.etcd.gateway import Unreachable
from cometmq.controller.etcd.key_values import KeyValues, WentBack
from cometmq.controller.group import GROUPS_MAX, Group

FORMAT: Final = 1
VALUE_BYTES_MAX: Final = 1 << 18
"""64 brokers with the longest addresses need less."""

_log = logging.getLogger("cometmq.controller")


class _Content(msgspec.Struct):
    format: int
    group: Group


class EtcdStore:
    """Implements ``DecisionStore``. ``look`` and ``take`` are for whoever asks for changes.

    Args:
        read_seconds_max: masters wait for the answer, and step down without one.
    """

    def __init__(self, key_values: KeyValues, prefix: str, read_seconds_max: float) -> None:
        self._key_values = key_values
        self._read_seconds_max = read_seconds_max
        self._prefix = f"{prefix}/groups/".encode()
        self._held: dict[str, Held] = {}
        self._seen_to = 0
        self._away = "etcd was not reached yet"
        self._is_lost = False
        """As the log says."""
        self._refusal = ""
        self._faults: dict[str, str] = {}
        self._swapping: set[asyncio.Task[bool]] = set()

    def open(self) -> None:
        """Nothing is held open."""

    async def close(self) -> None:
        if self._swapping:
            await asyncio.wait(self._swapping)

    def known(self) -> Mapping[str, Held]:
        return self._held

    async def read(self, broker_name: str) -> Held | None:
        self._refuse_away()
        key = self._key(broker_name)
        try:
            async with asyncio.timeout(self._read_seconds_max):
                answer = await self._key_values.txn(words.txn([words.get(key)]))
        except TimeoutError:
            self.lost("etcd does not answer in time")
            raise StoreAway(self._away) from None
        except StoreAway as error:
            self.lost(str(error))
            raise
        return self._take_one(broker_name, answer.reply)

    async def swap(self, broker_name: str, seen: int, group: Group) -> bool:
        self._refuse_away()
        # A caller that is cancelled must not leave etcd and memory different.
        task = asyncio.ensure_future(self._swap(broker_name, seen, group))
        self._swapping.add(task)
        task.add_done_callback(self._swapping.discard)
        return await asyncio.shield(task)

    async def _swap(self, broker_name: str, seen: int, group: Group) -> bool:
        key, value = self._key(broker_name), encode(group)
        request = words.txn(
            [words.put(key, value)],
            condition=words.unchanged_since(key, seen),
            failure=[words.get(key)],
        )
        try:
            answer = await self._key_values.txn(request)
        except EtcdRefused as error:
            self._note_refusal(str(error))
            raise
        except Unreachable as error:
            self.lost(str(error))
            # Not a StoreAway: it may be stored all the same, so nobody may take this for a no.
            raise StoreError(str(error)) from error
        self._note_refusal("")
        if answer.reply.succeeded:
            self._held[broker_name] = Held(group, answer.reply.header.revision)
            return True
        held = self._take_one(broker_name, answer.reply)
        # The first member that was asked has stored it, and did not live to tell.
        return answer.is_repeated and held is not None and held.group == group

    # What others have stored.

    def look(self) -> Words:
        """Asks for all groups that were changed since the last time; for all of them after a time without etcd."""
        since = 0 if self._away else self._seen_to
        return words.get_all(self._prefix, limit=GROUPS_MAX, changed_since=since)

    def take(self, found: list[KeyValue], revision: int) -> None:
        """The answer to ``look``. Raises WentBack."""
        names = set()
        for one in found:
            name = one.key.removeprefix(self._prefix).decode(errors="replace")
            names.add(name)
            try:
                self._take(name, one, revision)
            except WentBack:
                raise
            except StoreAway as error:
                self._note_fault(name, str(error))
        if self._away:
            for name in self._held.keys() - names:
                if self._held[name].version <= revision:
                    self._note_fault(name, _removed(self._key(name)))
            _log.info("etcd reached groups=%d revision=%d", len(self._held), revision)
        self._away = ""
        self._is_lost = False
        self._seen_to = revision

    @property
    def fault(self) -> str | None:
        """Why nothing is decided now; None if etcd answers."""
        return self._away or None

    def lost(self, reason: str) -> None:
        """etcd cannot be used; noted once. ``take`` ends it."""
        if not self._is_lost:
            _log.error(
                "etcd lost reason=%s: everything stays as it is, and nothing is decided", reason
            )
        self._away = reason
        self._is_lost = True

    def _refuse_away(self) -> None:
        # At once: brokers wait for the answer, and whether etcd is back is found out elsewhere.
        if self._away:
            raise StoreAway(self._away)

    def _take_one(self, broker_name: str, reply: TxnReply) -> Held | None:
        found = reply.found(0)
        if found:
            return self._take(broker_name, found[0], reply.header.revision)
        held = self._held.get(broker_name)
        if held is not None and held.version <= reply.header.revision:
            raise StoreAway(_removed(self._key(broker_name)))
        return None

    def _take(self, broker_name: str, found: KeyValue, revision: int) -> Held:
        """Believe it if it makes sense. Raises StoreAway: it does not, and what was known before still stands."""
        held = self._held.get(broker_name)
        if held is not None and found.mod_revision < held.version <= revision:
            raise self._key_values.went_back(
                f"{broker_name} of revision {found.mod_revision} after {held.version}"
            )
        group = decode(found.key, broker_name, found.value)
        if held is not None and held.version >= found.mod_revision:
            return Held(group, found.mod_revision)
        if held is not None and _is_older(group, held.group):
            raise StoreAway(
                f"etcd key {_shown(found.key)}: epochs or ids are lower than they were. Another program has written "
                "it; put it right, or restart all controllers of this group to accept it"
            )
        taken = Held(group, found.mod_revision)
        self._held[broker_name] = taken
        self._faults.pop(broker_name, None)
        return taken

    def _note_fault(self, broker_name: str, fault: str) -> None:
        if self._faults.get(broker_name) != fault:
            self._faults[broker_name] = fault
            _log.error("decisions not understood name=%s reason=%s", broker_name, fault)

    def _note_refusal(self, reason: str) -> None:
        if reason and reason != self._refusal:
            _log.error("etcd takes no decisions reason=%s", reason)
        elif self._refusal and not reason:
            _log.info("etcd takes decisions again")
        self._refusal = reason

    def _key(self, broker_name: str) -> bytes:
        return self._prefix + broker_name.encode()


def encode(group: Group) -> bytes:
    return msgspec.json.encode(_Content(FORMAT, group))


def decode(key: bytes, broker_name: str, value: bytes) -> Group:
    """Raises StoreAway for what no controller of ours has written."""
    fault: str | None
    try:
        if len(value) > VALUE_BYTES_MAX:
            raise msgspec.ValidationError(f"{len(value)} bytes")
        content = msgspec.json.decode(value, type=_Content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fault = f"not a decision: {error}"
    else:
        group = content.group
        fault = group.fault()
        if content.format != FORMAT:
            fault = f"format {content.format}, where {FORMAT} is understood"
        elif group.broker_name != broker_name:
            fault = f"it is about {group.broker_name}"
        if fault is None:
            return group
    raise StoreAway(f"etcd key {_shown(key)}: {fault}. Nothing is decided on it; put it right")


def _is_older(group: Group, than: Group) -> bool:
    return (
        group.master_epoch < than.master_epoch
        or group.sync_state_set_epoch < than.sync_state_set_epoch
        or group.next_id < than.next_id
    )


def _removed(key: bytes) -> str:
    return (
        f"etcd key {_shown(key)} was removed by another program: put it back, or restart all controllers of "
        "this group"
    )


def _shown(key: bytes) -> str:
    return key.decode(errors="replace")
