"""What groups filter topics by, compiled once: fed by heartbeats, kept in ``config/consumerFilter.json``.

    absent --heartbeat--> alive --last member gone, or no longer subscribed--> dead --a day--> absent
                          alive <--heartbeat-- dead

An expression that cannot be compiled is not taken in: the group's pulls learn that there is no filter for them. The
filter that was there before stays, with its old version. RocketMQ counts every filter as dead after a restart.

When a message is stored, ``bits_of`` holds it against the filters of its topic, dead ones included: their group may
come back with the same filter, whose birth then lies before the message. A new expression is a new birth.
Owned by the event loop; what ``unsaved`` returns may run in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock, Files
from cometmq.broker.filters.filter_config import FilterLimits
from cometmq.broker.filters.message_filter import BitTest, MessageFilter, Wants, selector_filter
from cometmq.model.bloom import BloomFilter
from cometmq.model.ids import Int64
from cometmq.model.messages.properties import RETRY_TOPIC, PropertyText
from cometmq.model.names import RETRY_PREFIX
from cometmq.model.sql92.errors import BadExpression
from cometmq.model.sql92.selector import Properties, Selector
from cometmq.model.subscription import SQL92, SubscriptionData
from cometmq.remoting.bounds.reached import Reached
from cometmq.store.meta.json_file import JsonFile, pretty, table_in

log = logging.getLogger("cometmq.broker")

DEAD_MS_MAX: Final = 24 * 3600 * 1000
"""A filter that nobody has used for so long is forgotten."""
SURE_DEAD_MS: Final = 30_000
"""Before a restart the members of a group were last heard of this long ago at the latest."""
COMPILED_MAX: Final = 512
"""Expressions of pulls that bring their own, kept compiled."""


class BloomFilterData(msgspec.Struct, rename="camel"):
    bit_num: int
    bit_pos: list[int]


class ConsumerFilter(msgspec.Struct, kw_only=True, rename="camel", eq=False):
    """One group's filter of one topic. The fields are those of the file."""

    bloom_filter_data: BloomFilterData | None = None
    born_time: Int64
    client_version: Int64
    consumer_group: str
    dead_time: Int64 = 0
    expression: str
    expression_type: str = SQL92
    topic: str

    @property
    def is_dead(self) -> bool:
        return self.dead_time >= self.born_time


class ConsumerFilters:
    def __init__(
        self,
        directory: str,
        files: Files,
        clock: Clock,
        bloom: BloomFilter,
        limits: FilterLimits | None = None,
        reached: Reached | None = None,
    ) -> None:
        self._directory = directory
        self._files = files
        self._clock = clock
        self._bloom = bloom
        self._limits = limits or FilterLimits()
        self._reached = reached or Reached()
        self._file = JsonFile(f"{directory}/consumerFilter.json", files)
        # By topic, then by group, as in the file.
        self._table: dict[str, dict[str, ConsumerFilter]] = {}
        self._filters: dict[tuple[str, str], MessageFilter] = {}
        self._topics_of: dict[str, set[str]] = {}
        self.change_count = 0
        """Grows with every change, except that dead filters are forgotten."""
        self._saved_count = 0
        self._judges: dict[str, list[tuple[Wants, int]]] = {}
        self.on_change: Callable[[], None] | None = None
        self.newest_ms: Callable[[], int] = _unknown
        """Store time of the newest message: no filter is born before it, whatever the clock says."""
        self.compile = lru_cache(maxsize=COMPILED_MAX)(self._compile)
        """Expression text -> filter. Raises BadExpression."""

    def load(self) -> None:
        """Raises CorruptFile when neither the file nor its backup can be read."""
        self._files.make_directory(self._directory)
        for entry in self._file.load(_read) or ():
            try:
                compiled = self.compile(entry.expression)
                self._check_bits(entry)
            except UsageError as error:
                log.warning(
                    "filter not loaded topic=%s group=%s reason=%s",
                    entry.topic,
                    entry.consumer_group,
                    error,
                )
                # Not to be found in the file again: messages are no longer held against it.
                self.change_count += 1
                continue
            entry.dead_time = max(entry.born_time, self._clock.wall_ms() - SURE_DEAD_MS)
            self._put(entry, compiled)

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        return self._table.get(topic, {}).get(group)

    def filter_of(self, topic: str, group: str) -> MessageFilter | None:
        """The compiled filter, dead or alive."""
        return self._filters.get((topic, group))

    def bits_of(self, topic: str, properties: str) -> bytes:
        """The bits of all groups whose filter wants a message with this property text; none when no group has one."""
        judges = self._judges.get(topic)
        if judges is None:
            if topic not in self._table:
                return b""
            judges = self._judges[topic] = self._judges_of(topic)
        pairs = PropertyText(properties)
        bits = 0
        for wants, group_bits in judges:
            if wants(pairs):
                bits |= group_bits
        return bits.to_bytes(self._bloom.bit_count // 8, "little")

    def retry_filter(self, group: str) -> MessageFilter:
        """Judges messages of the group's retry topic by its filters of the topics that they came from."""
        topics = self._topics_of.get(group, ())
        compiled = {topic: self._filters[topic, group] for topic in topics}
        scan_count = min((one.scan_count for one in compiled.values()), default=None)
        if scan_count is None:
            return MessageFilter()

        def wants(properties: Properties) -> bool:
            found = compiled.get(properties.get(RETRY_TOPIC) or "")
            return found is None or found.wants is None or found.wants(properties)

        return MessageFilter(wants=wants, scan_count=scan_count)

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Take in what a heartbeat says. Filters of topics that it no longer names are dead from now on."""
        topics = set()
        for subscription in subscriptions:
            if subscription.expression_type == SQL92 and not subscription.topic.startswith(
                RETRY_PREFIX
            ):
                topics.add(subscription.topic)
                self._register(group, subscription)
        for topic in self._topics_of.get(group, set()) - topics:
            self._bury(self._table[topic][group])

    def retire(self, group: str) -> None:
        """The last member of a group is gone."""
        self.register(group, ())

    def unsaved(self) -> Callable[[], None] | None:
        """Renders the table and returns the disk part of a save, for a worker thread; None when nothing changed."""
        if self.change_count == self._saved_count:
            return None
        self._forget_dead()
        content = self.encode()
        changes = self.change_count

        def write() -> None:
            self._file.save(content)
            self._saved_count = changes

        return write

    def encode(self) -> bytes:
        """The content of the file."""
        by_topic = {
            topic: {
                "groupFilterData": {group: filter_fields(entry) for group, entry in groups.items()},
                "topic": topic,
            }
            for topic, groups in self._table.items()
        }
        return pretty({"filterDataByTopic": by_topic}).encode()

    def _register(self, group: str, subscription: SubscriptionData) -> None:
        known = self.get(subscription.topic, group)
        if known is not None and subscription.sub_version <= known.client_version:
            if subscription.sub_version == known.client_version and known.is_dead:
                self._revive(known)
            return
        if known is not None and known.expression == subscription.sub_string:
            known.client_version = subscription.sub_version
            self._revive(known)
            return
        if known is None and len(self._filters) >= self._limits.filters_max:
            self._reached.count("consumerFiltersMax")
            log.warning(
                "filter refused topic=%s group=%s reason=%s",
                subscription.topic,
                group,
                f"there are {self._limits.filters_max}, the limit (consumerFiltersMax)",
            )
            return
        try:
            compiled = self.compile(subscription.sub_string)
        except BadExpression as error:
            if error.bound:
                self._reached.count(error.bound)
            log.warning(
                "filter refused topic=%s group=%s reason=%s", subscription.topic, group, error
            )
            return
        entry = ConsumerFilter(
            bloom_filter_data=BloomFilterData(
                self._bloom.bit_count, self._bloom.positions(f"{group}#{subscription.topic}")
            ),
            born_time=max(self._clock.wall_ms(), self.newest_ms()),
            client_version=subscription.sub_version,
            consumer_group=group,
            expression=subscription.sub_string,
            topic=subscription.topic,
        )
        self._put(entry, compiled)
        log.info(
            "filter set topic=%s group=%s expression=%r",
            subscription.topic,
            group,
            subscription.sub_string,
        )
        self._changed()

    def _compile(self, text: str) -> MessageFilter:
        return selector_filter(Selector(text, self._limits.sql), self._limits.scan_micros_max)

    def _put(self, entry: ConsumerFilter, compiled: MessageFilter) -> None:
        self._table.setdefault(entry.topic, {})[entry.consumer_group] = entry
        self._filters[entry.topic, entry.consumer_group] = MessageFilter(
            wants=compiled.wants,
            scan_count=compiled.scan_count,
            by_unit=BitTest(entry.born_time, self._bloom.bit_count, self._group_bits(entry)),
            program=compiled.program,
        )
        self._judges.pop(entry.topic, None)
        self._topics_of.setdefault(entry.consumer_group, set()).add(entry.topic)

    def _group_bits(self, entry: ConsumerFilter) -> int:
        assert entry.bloom_filter_data is not None, entry
        return self._bloom.bits(entry.bloom_filter_data.bit_pos)

    def _judges_of(self, topic: str) -> list[tuple[Wants, int]]:
        judges = []
        for group, entry in self._table[topic].items():
            wants = self._filters[topic, group].wants
            assert wants is not None, entry
            judges.append((wants, self._group_bits(entry)))
        return judges

    def _check_bits(self, entry: ConsumerFilter) -> None:
        """As RocketMQ does: with other settings of the Bloom filter, what was calculated before does not count."""
        bits = entry.bloom_filter_data
        if bits is None or not self._bloom.is_of(bits.bit_num, bits.bit_pos):
            raise UsageError(f"bits {bits} are not those of {self._bloom}")

    def _revive(self, entry: ConsumerFilter) -> None:
        entry.dead_time = 0
        self._changed()

    def _bury(self, entry: ConsumerFilter) -> None:
        if not entry.is_dead:
            entry.dead_time = max(self._clock.wall_ms(), entry.born_time)
            self._changed()

    def _forget_dead(self) -> None:
        oldest = self._clock.wall_ms() - DEAD_MS_MAX
        for topic, groups in list(self._table.items()):
            for group, entry in list(groups.items()):
                if entry.is_dead and entry.dead_time < oldest:
                    del groups[group]
                    del self._filters[topic, group]
                    self._judges.pop(topic, None)
                    self._topics_of[group].discard(topic)
                    if not self._topics_of[group]:
                        del self._topics_of[group]
            if not groups:
                del self._table[topic]

    def _changed(self) -> None:
        self.change_count += 1
        if self.on_change is not None:
            self.on_change()

    def __repr__(self) -> str:
        return f"<ConsumerFilters {len(self._filters)} filters of {len(self._table)} topics>"


def _unknown() -> int:
    return 0


def filter_fields(entry: ConsumerFilter) -> dict[str, Any]:
    """A filter as RocketMQ writes it."""
    return dict(sorted({**msgspec.to_builtins(entry), "dead": entry.is_dead}.items()))


def _read(content: dict[str, Any]) -> list[ConsumerFilter]:
    entries = []
    by_topic = table_in(content, "filterDataByTopic")
    for topic in by_topic:
        groups = table_in(table_in(by_topic, topic), "groupFilterData")
        entries += [
            msgspec.convert(table_in(groups, group), ConsumerFilter, strict=False)
            for group in groups
        ]
    return [entry for entry in entries if entry.expression_type == SQL92]
