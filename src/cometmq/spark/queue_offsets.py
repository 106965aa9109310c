"""Offsets by queue, as Spark keeps them in its checkpoint and as users write them in options. No I/O.

    {"orders": {"broker-a": {"0": 120, "1": 98}}}

Spark compares offsets as texts, so keys are always in the same order. An option may also hold words instead of numbers,
for one queue or for all queues of a broker or topic at once:

    {"orders": {"broker-a": {"0": 120, "1": "latest"}, "broker-b": "earliest"}, "bills": "2026-05-01T00:00:00Z"}
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import BadOption

Offsets = Mapping[MessageQueue, int]
OffsetJson = dict[str, dict[str, dict[str, int]]]

_LATEST_NUMBER: Final = -1
_EARLIEST_NUMBER: Final = -2
"""Instead of the words, as users of Spark's Kafka source know them."""

_EXPECTED: Final = (
    "earliest, latest, group, a time like 2026-05-01T12:00:00Z, or JSON by topic, broker and queue like "
    '{"orders": {"broker-a": {"0": 120, "1": "latest"}}}'
)


class Word(Enum):
    """A place that has to be asked for."""

    EARLIEST = "earliest"
    LATEST = "latest"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first message stored at this time or later."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int


Position = Word | AtTime | AtOffset


def to_json(offsets: Offsets) -> OffsetJson:
    """What Spark is handed; equal offsets make equal texts."""
    nested: OffsetJson = {}
    for queue in sorted(offsets):
        by_queue = nested.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})
        by_queue[str(queue.queue_id)] = offsets[queue]
    return nested


def from_json(value: Any) -> dict[MessageQueue, int]:
    """The inverse. Raises BadOption for what ``to_json`` never makes."""
    offsets: dict[MessageQueue, int] = {}
    try:
        for topic, by_broker in value.items():
            for broker_name, by_queue in by_broker.items():
                for queue_id, offset in by_queue.items():
                    if type(offset) is not int or offset < 0:
                        raise ValueError(offset)
                    offsets[MessageQueue(broker_name, int(queue_id), topic)] = offset
    except (AttributeError, ValueError, TypeError):
        raise BadOption(
            "offsets of a checkpoint: expected JSON by topic, broker and queue as this source writes it, "
            f"got {json.dumps(value)[:200]}; was the checkpoint made by another source?"
        ) from None
    return offsets


class Positions:
    """Where to start or end in each queue.

    Args:
        default: for queues that ``by_place`` says nothing about; None when it must say something about all.
        by_place: positions by (topic,), (topic, broker) or (topic, broker, queue id); the longest one counts.
    """

    def __init__(
        self,
        default: Position | None,
        by_place: Mapping[tuple[str | int, ...], Position] | None = None,
    ) -> None:
        self._default = default
        self._by_place = dict(by_place or {})

    def of(self, queue: MessageQueue) -> Position | None:
        place = (queue.topic, queue.broker_name, queue.queue_id)
        for length in (3, 2, 1):
            position = self._by_place.get(place[:length])
            if position is not None:
                return position
        return self._default

    def unknown(self, queues: Iterable[MessageQueue]) -> list[str]:
        """Places that were named but are none of these queues', as texts."""
        known: set[tuple[str | int, ...]] = set()
        for queue in queues:
            place = (queue.topic, queue.broker_name, queue.queue_id)
            known.update((place, place[:2], place[:1]))
        return ["/".join(map(str, place)) for place in self._by_place if place not in known]

    @property
    def needs_group(self) -> bool:
        return Word.GROUP in (self._default, *self._by_place.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Positions):
            return NotImplemented
        return self._default == other._default and self._by_place == other._by_place

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Positions({self._default!r}, {self._by_place!r})"


def positions_of(
    name: str, positions: Positions | None, default: Word, queues: Collection[MessageQueue]
) -> dict[MessageQueue, Position]:
    """The position of each queue.

    Args:
        name: of the option, for complaints.
        default: for queues about which ``positions`` says nothing.

    Raises:
        BadOption: a place is named that does not exist.
    """
    positions = positions or Positions(default)
    if unknown := positions.unknown(queues):
        raise BadOption(
            f"option {name}: expected queues that exist, got {', '.join(unknown)}; there are "
            f"{', '.join(map(queue_text, sorted(queues)))}"
        )
    return {queue: positions.of(queue) or default for queue in queues}


def queue_text(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def parse_positions(name: str, text: str) -> Positions:
    """The value of an option. Raises BadOption."""
    if not text.startswith("{"):
        return Positions(_word(name, text))
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadOption(
            f"option {name}: expected {_EXPECTED}; got JSON that cannot be read: {error}"
        ) from None
    by_place: dict[tuple[str | int, ...], Position] = {}
    _collect(name, value, (), by_place)
    if not by_place:
        raise BadOption(f"option {name}: expected {_EXPECTED}; got JSON that names no queue")
    return Positions(None, by_place)


def parse_time(name: str, text: str) -> AtTime:
    """Milliseconds since 1970, or an ISO time with its offset from UTC. Raises BadOption."""
    time = _time(text)
    if time is None:
        raise BadOption(
            f"option {name}: expected milliseconds since 1970 or a time with its zone like 2026-05-01T12:00:00Z or "
            f"2026-05-01T12:00:00+02:00, got {text!r}"
        )
    return time


def _collect(
    name: str,
    value: object,
    place: tuple[str | int, ...],
    into: dict[tuple[str | int, ...], Position],
) -> None:
    if isinstance(value, dict) and len(place) < 3:
        for key, inner in value.items():
            if len(place) < 2:
                _collect(name, inner, (*place, key), into)
            elif key.isascii() and key.isdecimal():
                _collect(name, inner, (*place, int(key)), into)
            else:
                where = "/".join(map(str, place))
                raise BadOption(
                    f"option {name}: expected queue ids like 0 below {where}, got {key!r}"
                )
        return
    where = "/".join(map(str, place))
    if type(value) is int and len(place) == 3:
        if value >= 0:
            into[place] = AtOffset(value)
        elif value in (_EARLIEST_NUMBER, _LATEST_NUMBER):
            into[place] = Word.EARLIEST if value == _EARLIEST_NUMBER else Word.LATEST
        else:
            raise BadOption(
                f"option {name}: expected an offset of at least 0 for {where}, or {_EARLIEST_NUMBER} for earliest or "
                f"{_LATEST_NUMBER} for latest, got {value}"
            )
    elif isinstance(value, str) and place:
        into[place] = _word(f"{name}, {where}", value)
    else:
        raise BadOption(
            f"option {name}: expected {_EXPECTED}; got {json.dumps(value)[:100]} for {where or 'all'}"
        )


def _word(name: str, text: str) -> Position:
    try:
        return Word(text.lower())
    except ValueError:
        pass
    time = _time(text)
    if time is None:
        raise BadOption(f"option {name}: expected {_EXPECTED}; got {text!r}")
    return time


def _time(text: str) -> AtTime | None:
    if text.isascii() and text.isdecimal():
        return AtTime(int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return AtTime(int(moment.timestamp() * 1000))
