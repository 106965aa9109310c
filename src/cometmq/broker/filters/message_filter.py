"""Which messages a pull wants: by tag hash while the store walks a queue, or by the properties of the records.

A tag's hash can collide; the client looks at the tag itself again. An expression's verdict is final: a message whose
values cannot be compared is not wanted, and the queue goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final, Protocol

from cometmq.model.messages.properties import PropertyText
from cometmq.model.messages.record import BadRecord, properties_text
from cometmq.model.sql92.selector import Properties, Selector
from cometmq.model.subscription import ALL, SubscriptionData
from cometmq.native.choice import twin
from cometmq.store.queues.extended_queues import TagFilter, UnitFilter

SCAN_COUNT_MAX: Final = 1024
"""Most entries of a queue that one pull looks at."""
PROPERTIES_MICROSECONDS: Final = 8
PART_MICROSECONDS: Final = 0.25

Wants = Callable[[Properties], bool]

_expressions = twin("expressions")
_pulls = twin("pulls")


class Program(Protocol):
    """An expression compiled to judge records and texts of properties, without an object for each."""

    def __call__(self, record: memoryview) -> bool: ...

    def matches_text(self, properties: bytes) -> bool: ...


class MessageFilter:
    """What a pull wants. Immutable.

    Args:
        tags: hashes of the wanted tags; None takes all.
        wants: judges by properties; None takes all.
        scan_count: most entries of the queue to look at in one go.
        function: name of a filter function that judges, in a process of its own.
        by_unit: rules messages out by what the extended consume queue holds of them; None rules out none.
        program: judges as ``wants`` does, and faster.
    """

    __slots__ = ("by_tag", "by_unit", "function", "program", "scan_count", "tags", "wants")

    def __init__(
        self,
        tags: Collection[int] | None = None,
        wants: Wants | None = None,
        scan_count: int = SCAN_COUNT_MAX,
        function: str | None = None,
        by_unit: UnitFilter | None = None,
        program: Program | None = None,
    ) -> None:
        self.tags = tags
        self.by_tag = None if tags is None else _tag_judge(tags)
        """Judges an entry by the hash of its tag; None when tags do not matter."""
        self.wants = wants
        self.scan_count = scan_count
        self.function = function
        self.by_unit = by_unit
        self.program = program

    @property
    def by_record(self) -> Callable[[memoryview], bool] | None:
        """Judges a record by its bytes; None when records need not be looked at."""
        return self.program or (None if self.wants is None else self._wants_record)

    @property
    def by_properties(self) -> Callable[[bytes], bool] | None:
        """Judges a message that has just been stored by the text of its properties."""
        if self.program is not None:
            return self.program.matches_text
        return None if self.wants is None else self._wants_text

    def _wants_record(self, record: memoryview) -> bool:
        assert self.wants is not None
        return wants_record(self.wants, record)

    def _wants_text(self, properties: bytes) -> bool:
        assert self.wants is not None
        return wants_text(self.wants, properties)


def wants_record(wants: Wants, record: memoryview) -> bool:
    """Judges a record by its properties. One that has none to be read is not wanted."""
    try:
        return wants(PropertyText(properties_text(record)))
    except BadRecord:
        return False


def wants_text(wants: Wants, properties: bytes) -> bool:
    """Judges a message by the text of its properties."""
    try:
        return wants(PropertyText(properties.decode()))
    except UnicodeDecodeError:
        return False


def _tag_judge(tags: Collection[int]) -> TagFilter:
    return _pulls.Tags(tags) if _pulls is not None else tags.__contains__


ALL_MESSAGES: Final = MessageFilter()


class BitTest:
    """Rules a message out for one group when the bits that were calculated as it was stored are not the group's.

    Args:
        born_ms: when the group's filter came to be. What was stored by then was not held against it.
        bit_count: of the Bloom filter; bits of another length are those of other settings, and tell nothing.
        bits: the group's.
    """

    __slots__ = ("_bits", "_born_ms", "_byte_count")

    def __init__(self, born_ms: int, bit_count: int, bits: int) -> None:
        self._born_ms = born_ms
        self._byte_count = bit_count // 8
        self._bits = bits

    def __call__(self, store_timestamp: int, bits: bytes) -> bool:
        """False: certainly not wanted. True: the record will tell."""
        if store_timestamp <= self._born_ms or len(bits) != self._byte_count:
            return True
        return int.from_bytes(bits, "little") & self._bits == self._bits


def tag_filter(subscription: SubscriptionData) -> MessageFilter:
    """The filter of a subscription by tags."""
    if subscription.sub_string == ALL or subscription.class_filter_mode:
        return ALL_MESSAGES
    return MessageFilter(tags=frozenset(subscription.code_set))


def selector_filter(selector: Selector, scan_micros_max: int) -> MessageFilter:
    """The filter of an expression; the longer it is, the fewer records one pull holds against it.

    Args:
        scan_micros_max: about the time for that. The loop serves everybody; the client comes again at once.
    """
    per_record = PROPERTIES_MICROSECONDS + PART_MICROSECONDS * selector.cost
    scan_count = max(int(scan_micros_max / per_record), 1)
    return MessageFilter(
        wants=selector.matches,
        scan_count=min(scan_count, SCAN_COUNT_MAX),
        program=program_of(selector),
    )


def program_of(selector: Selector) -> Program | None:
    """The expression for the compiled twin, which asks the selector itself about what is unusual."""
    if _expressions is None:
        return None
    program: Program = _expressions.Program(
        selector.tree,
        partial(wants_record, selector.matches),
        partial(wants_text, selector.matches),
    )
    return program


def no_filter_text(kind: str | None) -> str:
    """What a broker with ``enablePropertyFilter=false`` says."""
    return f"The broker does not support consumer to filter message by {kind}"
