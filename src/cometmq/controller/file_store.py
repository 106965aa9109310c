"""Decisions in one file of this machine, for a single controller. A lock keeps a second one away.

``decisions.json`` is replaced as a whole: a crash leaves the old content or the new one. Writing happens in a thread,
one change at a time.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping
from typing import Final

import msgspec

from cometmq.base.errors import CorruptFile, StoreError
from cometmq.base.ports import Files, Lock
from cometmq.controller.decision_store import NEVER_STORED, Held
from cometmq.controller.group import Group

FILE_NAME: Final = "decisions.json"
LOCK_NAME: Final = "lock"
FORMAT: Final = 1
_JAVA_PREFIX: Final = "dledger-"
_ADVICE: Final = (
    "Restore it from a copy; without it, all brokers of controller mode need new ids. "
    "Nothing was overwritten"
)


class _StoredGroup(msgspec.Struct):
    version: int
    group: Group


class _Content(msgspec.Struct):
    format: int
    groups: list[_StoredGroup]


class FileStore:
    """``open`` it once, ``close`` it once. Implements ``DecisionStore``."""

    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._path = posixpath.join(directory, FILE_NAME)
        self._files = files
        self._held: dict[str, Held] = {}
        self._lock: Lock | None = None
        self._one_at_a_time = asyncio.Lock()
        self._writing: set[asyncio.Task[bool]] = set()

    def open(self) -> None:
        """Read the file, and keep other controllers away from it.

        Raises:
            StoreError: another controller uses the directory, it is a RocketMQ controller's, or the file is damaged.
        """
        try:
            self._files.make_directory(self._directory)
            self._refuse_java()
            self._lock = self._take_lock()
            try:
                self._held = self._load()
            except BaseException:
                self._release()
                raise
        except OSError as error:
            raise StoreError(
                f"controllerStorePath {self._directory} cannot be used: {error.strerror or error}"
            ) from error

    async def close(self) -> None:
        """Wait for a change that is being written, and let others use the directory."""
        if self._writing:
            await asyncio.wait(self._writing)
        self._release()

    def known(self) -> Mapping[str, Held]:
        return self._held

    async def read(self, broker_name: str) -> Held | None:
        return self._held.get(broker_name)

    async def swap(self, broker_name: str, seen: int, group: Group) -> bool:
        # A caller that is cancelled must not leave file and memory different.
        task = asyncio.ensure_future(self._swap(broker_name, seen, group))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)

    async def _swap(self, broker_name: str, seen: int, group: Group) -> bool:
        async with self._one_at_a_time:
            if self._lock is None:
                raise StoreError("the store of decisions is closed")
            held = self._held.get(broker_name)
            if seen != (NEVER_STORED if held is None else held.version):
                return False
            changed = {**self._held, broker_name: Held(group, seen + 1)}
            try:
                await asyncio.to_thread(self._files.replace, self._path, encode(changed))
            except OSError as error:
                raise StoreError(
                    f"{self._path} cannot be written: {error.strerror or error}"
                ) from error
            self._held = changed
            return True

    def _load(self) -> dict[str, Held]:
        if not self._files.exists(self._path):
            return {}
        return decode(self._path, self._files.read(self._path))

    def _refuse_java(self) -> None:
        if self._files.exists(self._path):
            return
        for name in self._files.names(self._directory):
            if name.startswith(_JAVA_PREFIX):
                raise StoreError(
                    f"{self._directory}/{name} is of a RocketMQ controller, whose decisions cannot be read here: "
                    "give this one its own controllerStorePath"
                )

    def _take_lock(self) -> Lock:
        try:
            return self._files.lock(posixpath.join(self._directory, LOCK_NAME))
        except StoreError as error:
            raise StoreError(
                f"another controller uses {self._directory}: stop it, or give this one its own controllerStorePath"
            ) from error

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def encode(held: Mapping[str, Held]) -> bytes:
    content = _Content(FORMAT, [_StoredGroup(one.version, one.group) for one in held.values()])
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def decode(path: str, data: bytes) -> dict[str, Held]:
    """Raises CorruptFile for what no controller of ours has written."""
    try:
        content = msgspec.json.decode(data, type=_Content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptFile(path, f"not a file of decisions: {error}", _ADVICE) from None
    if content.format != FORMAT:
        raise CorruptFile(
            path, f"format {content.format}, where {FORMAT} is understood", "Use a newer version"
        )
    held: dict[str, Held] = {}
    for one in content.groups:
        name = one.group.broker_name
        fault = one.group.fault()
        if fault is None and (name in held or one.version <= NEVER_STORED):
            fault = "it is there twice, or has no version"
        if fault is not None:
            raise CorruptFile(path, f"broker-set {name}: {fault}", _ADVICE)
        held[name] = Held(one.group, one.version)
    return held
