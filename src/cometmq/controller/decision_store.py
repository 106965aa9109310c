"""Where decisions are kept: a port with read and compare-and-swap, and the way from a request to a stored decision.

Controllers have no other memory, so any number of them may share a store: whoever comes second finds another version
and decides again. ``file_store`` is the embedded one, for a single controller; ``etcd.etcd_store`` is for several.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

from cometmq.base.errors import StoreError
from cometmq.controller.group import Decision, Group
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

ATTEMPTS_MAX: Final = 20
"""Each lost attempt is another controller's success, so even with many of them a few suffice."""

NEVER_STORED: Final = 0

_log = logging.getLogger("cometmq.controller")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Held:
    """A group as it is stored. The version is above 0, and another one after each change."""

    group: Group
    version: int


class StoreAway(StoreError):
    """The store cannot be used now, and nothing was changed. What is known still stands."""


class Seen(NamedTuple):
    """A group, and whether it is so now: while the store is away, it may be long out of date."""

    group: Group | None
    is_certain: bool


class DecisionStore(Protocol):
    """Keeps one ``Group`` for each broker name."""

    def known(self) -> Mapping[str, Held]:
        """All groups, as far as this controller has heard: may be behind what others have stored."""
        ...

    async def read(self, broker_name: str) -> Held | None:
        """What is stored now; not behind any swap that has ended. Raises StoreAway."""
        ...

    async def swap(self, broker_name: str, seen: int, group: Group) -> bool:
        """Store ``group`` if the version is still ``seen``; 0 if there was nothing. False: it is another one.

        On True it is durable. Raises StoreAway: it is not stored. Raises StoreError: it may or may not be, now or
        later.
        """
        ...


async def settle(
    store: DecisionStore, broker_name: str, decide: Callable[[Group | None], Decision[T]]
) -> Decision[T]:
    """Decide on what is stored, and store it; again if another controller was faster. One log line if it changed.

    Raises:
        Refused: by ``decide``, or because the store cannot be used. Nothing was decided that anyone may rely on.
    """
    for _ in range(ATTEMPTS_MAX):
        held = await _read(store, broker_name)
        before = None if held is None else held.group
        decision = decide(before)
        after = decision.group
        if after is None or after is before:
            return decision
        fault = after.fault()
        assert fault is None, fault
        try:
            is_stored = await store.swap(
                broker_name, NEVER_STORED if held is None else held.version, after
            )
        except StoreError as error:
            raise _unusable(error) from error
        if is_stored:
            _log.info("%s", decision.line)
            return decision
    raise Refused(
        ResponseCode.SYSTEM_BUSY, f"other controllers decided on {broker_name} at the same time"
    )


async def read(store: DecisionStore, broker_name: str) -> Group | None:
    """The group as it is now. Raises Refused if the store cannot be used."""
    held = await _read(store, broker_name)
    return None if held is None else held.group


async def look(store: DecisionStore, broker_name: str) -> Seen:
    """The group as it is now, or was when the store was last reached. Raises Refused if that is not known."""
    try:
        held = await store.read(broker_name)
    except StoreAway as error:
        held = store.known().get(broker_name)
        if held is None:
            raise _unusable(error) from error
        return Seen(held.group, is_certain=False)
    except StoreError as error:
        raise _unusable(error) from error
    return Seen(None if held is None else held.group, is_certain=True)


async def _read(store: DecisionStore, broker_name: str) -> Held | None:
    try:
        return await store.read(broker_name)
    except StoreError as error:
        raise _unusable(error) from error


def _unusable(error: StoreError) -> Refused:
    if isinstance(error, StoreAway):
        # The store itself logs it, once. The code sends brokers and tools, RocketMQ's too, to another controller.
        return Refused(
            ResponseCode.CONTROLLER_NOT_LEADER, f"the controller cannot decide now: {error}"
        )
    _log.error("store of decisions unusable cause=%s", error)
    return Refused(ResponseCode.SYSTEM_ERROR, f"the controller cannot store decisions: {error}")
