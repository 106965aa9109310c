"""How far each consumer group has read each queue: ``config/consumerOffset.json``.

Kept in memory and saved by ``save_if_changed``, which the broker calls every few seconds and when it stops: after a
crash, some messages are delivered again. RocketMQ's key of an entry is ``topic@group``.

In addition to the offsets, it keeps how far each group has pulled (``pullOffsetTable``, saved with the others), and
offsets that were reset but whose consumers do not know it yet. Those are forgotten when the broker stops: the
consumers then ask for the offset anyway.

Thread rule: the owner thread calls everything; what ``unsaved`` returns may run in a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cometmq.base.ports import Clock, Files
from cometmq.store.meta.json_file import BadContent, JsonFile, pretty, table_in
from cometmq.store.meta.rendered_rows import RenderedRows, one_line, table_text

_SEPARATOR = "@"
_SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
_PULLED = "pullOffsetTable"
_RESETS = "resetOffsetTable"
_LISTED = "groupTopicMap"

PULLED_MAX: Final = 100_000
"""Maximum number of groups and topics whose pull offsets are kept; others seem to have nothing in flight."""


PORTION: Final = 250
"""Keys of another broker's table that are taken over at once: half a millisecond."""


class _Reset(NamedTuple):
    offset: int
    told: set[str]


class OffsetTable:
    def __init__(self, directory: str, files: Files, clock: Clock) -> None:
        self._directory = directory
        self._files = files
        self._clock = clock
        self._file = JsonFile(f"{directory}/consumerOffset.json", files)
        self._table: dict[str, dict[int, int]] = {}
        self._pulled: dict[str, dict[int, int]] = {}
        self._rows = RenderedRows(lambda key: self._table[key])
        self._pulled_rows = RenderedRows(lambda key: self._pulled[key])
        self._listed: dict[str, Any] = {}
        self._listed_rows = RenderedRows(self._topics_listed)
        self._has_listed = False
        self._resets: dict[str, dict[int, _Reset]] = {}
        self._topics: dict[str, set[str]] = {}
        self._groups: dict[str, set[str]] = {}
        self._other_content: dict[str, Any] = {}
        self.change_count = 0
        """Grows with every change of a committed offset."""
        self._saved_count = 0
        self._has_pulled = False
        self._sent_count = -1
        self._sent = b""
        self.on_commit: Callable[[str, str, int, int], None] | None = None
        """Told of every offset that a group has committed here, unless it had it: group, topic, queue id, offset."""

    def load(self) -> None:
        """Read the file, or its backup; without either, the table is empty.

        Raises:
            CorruptFile: neither can be read; nothing was changed.
        """
        self._files.make_directory(self._directory)
        self._file.load(self._read)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group continues at ``offset``, which may be less than before, after a reset."""
        queues = self._table.get(topic + _SEPARATOR + group)
        if queues is None:
            queues = self._add(topic, group)
        if queues.get(queue_id) != offset:
            queues[queue_id] = offset
            self._rows.changed(topic + _SEPARATOR + group)
            self.change_count += 1
            if self.on_commit is not None:
                self.on_commit(group, topic, queue_id, offset)

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """The committed offset; -1 if the group has none there."""
        queues = self._table.get(topic + _SEPARATOR + group)
        return -1 if queues is None else queues.get(queue_id, -1)

    def pulled(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """The group has pulled what is before ``next_offset``. On its own, this does not cause a save."""
        key = topic + _SEPARATOR + group
        queues = self._pulled.get(key)
        if queues is None:
            if len(self._pulled) >= PULLED_MAX:
                return
            queues = self._pulled[key] = {}
        if queues.get(queue_id) != next_offset:
            queues[queue_id] = next_offset
            self._pulled_rows.changed(key)

    def pull_offset(self, group: str, topic: str, queue_id: int) -> int:
        """How far the group has pulled; at least the committed offset."""
        queues = self._pulled.get(topic + _SEPARATOR + group, {})
        return max(self.query(group, topic, queue_id), queues.get(queue_id, -1))

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Like ``commit``, and reported to the readers of the queue: see ``told_reset``."""
        self.commit(group, topic, queue_id, offset)
        self.pulled(group, topic, queue_id, offset)
        self._resets.setdefault(topic + _SEPARATOR + group, {})[queue_id] = _Reset(offset, set())

    def is_reset(self, group: str, topic: str, queue_id: int, reader: str = "") -> bool:
        """Whether there is a reset that a reader has not been told about."""
        reset = self._resets.get(topic + _SEPARATOR + group, {}).get(queue_id)
        return reset is not None and reader not in reset.told

    @property
    def has_resets(self) -> bool:
        """Whether there is a reset that not all readers may know of."""
        return bool(self._resets)

    def told_reset(self, group: str, topic: str, queue_id: int, reader: str) -> int | None:
        """The offset that a queue was reset to, for a reader that has not been told yet.

        Not only for the first reader: that may be one that has given up the queue, and whose last pull was still
        waiting. Not only for readers at another offset: they may hold messages that they must no longer consume. The
        reset is complete when a reader that was told comes back.
        """
        if not self._resets:
            return None
        reset = self._resets.get(topic + _SEPARATOR + group, {}).get(queue_id)
        if reset is None:
            return None
        if reader in reset.told:
            self.take_reset(group, topic, queue_id)
            return None
        reset.told.add(reader)
        return reset.offset

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The offset that a queue was reset to, once."""
        if not self._resets:
            return None
        key = topic + _SEPARATOR + group
        queues = self._resets.get(key)
        if queues is None:
            return None
        reset = queues.pop(queue_id, None)
        if not queues:
            del self._resets[key]
        return None if reset is None else reset.offset

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        """By queue id; a copy."""
        return dict(self._table.get(topic + _SEPARATOR + group, {}))

    def topics_of(self, group: str) -> set[str]:
        return set(self._topics.get(group, ()))

    def groups_of(self, topic: str) -> set[str]:
        return set(self._groups.get(topic, ()))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Group and topic of all that has a position, committed or pulled; some come twice.

        The table may be used between two steps, and what comes into it then may be missing.
        """
        for group in list(self._topics):
            for topic in self.topics_of(group):
                yield group, topic
        for key in list(self._pulled):
            topic, _, group = key.partition(_SEPARATOR)
            yield group, topic

    def remove_topic(self, topic: str) -> None:
        for group in self.groups_of(topic) | {
            group for name, group in self._pulled_by() if name == topic
        }:
            self.remove(group, topic)

    def remove_group(self, group: str) -> None:
        for topic in self.topics_of(group) | {
            topic for topic, name in self._pulled_by() if name == group
        }:
            self.remove(group, topic)

    def remove(self, group: str, topic: str) -> None:
        """Remove one group's offsets of one topic."""
        key = topic + _SEPARATOR + group
        self._pulled.pop(key, None)
        self._pulled_rows.removed(key)
        self._resets.pop(key, None)
        if self._table.pop(key, None) is None:
            return
        self._rows.removed(key)
        for table, outer, inner in ((self._topics, group, topic), (self._groups, topic, group)):
            table[outer].discard(inner)
            if not table[outer]:
                del table[outer]
        self._topics_changed(group)
        if isinstance(other := self._other_content.get(_RESETS), dict):
            other.pop(key, None)
        self.change_count += 1

    def clone(self, source_group: str, group: str, topic: str | None = None) -> None:
        """Give ``group`` the offsets of another, in one topic or in all of them."""
        for name in self.topics_of(source_group) if topic is None else {topic}:
            for queue_id, offset in self.offsets(source_group, name).items():
                self.commit(group, name, queue_id, offset)

    def replace_all(self, table: Mapping[str, Mapping[int, int]]) -> None:
        """Become a copy of another broker's table, by ``topic@group``."""
        for _ in self.replacing(table):
            pass

    def replacing(self, table: Mapping[str, Mapping[int, int]]) -> Generator[None, None, None]:
        """The same in portions: between two steps others may use the table, in which each key is new or old."""
        for count, (key, queues) in enumerate(table.items(), 1):
            if self._table.get(key) != queues:
                self._put(key, dict(queues))
                self._rows.changed(key)
                self.change_count += 1
            if count % PORTION == 0:
                yield
        yield
        for count, key in enumerate(self._table.keys() - table.keys(), 1):
            topic, separator, group = key.partition(_SEPARATOR)
            if separator:
                self.remove(group, topic)
            else:
                del self._table[key]
                self._rows.removed(key)
                self.change_count += 1
            if count % PORTION == 0:
                yield

    def cut(self, end_offset: Callable[[str, int], int]) -> int:
        """Lower offsets beyond the end of a queue, given by ``end_offset``. Returns how many were changed.

        The table can be newer than the log: after a power loss, or in a slave that had not received all of it. New
        messages will get those offsets, and the groups would never see them. The system's own offsets are left alone.
        """
        count = 0
        for key, queues in self._table.items():
            topic, separator, group = key.partition(_SEPARATOR)
            if not separator or group.startswith(_SYSTEM_GROUP_PREFIX):
                continue
            for queue_id, offset in queues.items():
                if offset > (end := end_offset(topic, queue_id)):
                    queues[queue_id] = end
                    self._rows.changed(key)
                    count += 1
        self.change_count += count
        return count

    def save_if_changed(self) -> None:
        """Write the file if an offset has changed since the last save. Raises DiskFull, and then stays changed."""
        if (write := self.unsaved()) is not None:
            write()

    @property
    def is_saved(self) -> bool:
        return self.change_count == self._saved_count

    def unsaved(self) -> Callable[[], None] | None:
        """Render the table and return the disk part of a save, for a worker thread; None if nothing changed."""
        if self.is_saved:
            return None
        if isinstance(version := self._other_content.get("dataVersion"), dict):
            counter = int(version.get("counter", 0)) + 1
            self._other_content["dataVersion"] = {
                **version,
                "counter": counter,
                "timestamp": self._clock.wall_ms(),
            }
        text = self._file_text()
        changes = self.change_count

        def write() -> None:
            self._file.save(text().encode())
            self._saved_count = changes

        return write

    def freshen(self) -> bool:
        """Do a part of the work of the next ``unsaved`` or ``encode``. Whether there is more to do."""
        return any(rows.freshen() for rows in self._all_rows)

    @property
    def is_fresh(self) -> bool:
        """Whether ``freshen`` would do nothing."""
        return all(rows.is_fresh for rows in self._all_rows)

    def encode(self) -> bytes:
        """The offsets on one line, as a replica requests them.

        Not quite the content of the file. A slave of RocketMQ 5 fails without a version, which files of ours do not
        have, as those of 4.9. And it fails, of 5.5.0, where it skips a table with numbers as keys.
        """
        if self._sent_count != self._rows.change_count:
            version = {
                "counter": self.change_count,
                "stateVersion": 0,
                "timestamp": self._clock.wall_ms(),
            }
            others = {"dataVersion": version, **self._other_content}
            text = self._text(others, {"offsetTable": self._rows.rows(self._table)})
            self._sent, self._sent_count = one_line(text()), self._rows.change_count
        return self._sent

    def _file_text(self) -> Callable[[], str]:
        tables = {"offsetTable": self._rows.rows(self._table)}
        if self._pulled or self._has_pulled:
            tables[_PULLED] = self._pulled_rows.rows(self._pulled)
        return self._text(self._other_content, tables)

    def _text(
        self, others: Mapping[str, Any], tables: Mapping[str, list[str]]
    ) -> Callable[[], str]:
        """The content as it is now, put together by whoever calls what is returned."""
        content = {key: pretty(value, 1) for key, value in others.items()}
        if self._has_listed:
            groups = [one for one in {**self._listed, **self._topics} if one in self._topics]
            tables = {**tables, _LISTED: self._listed_rows.rows(groups)}

        def text() -> str:
            parts = content | {key: table_text(rows) for key, rows in tables.items()}
            lines = [f"\n\t{pretty(key)}:{parts[key]}" for key in sorted(parts)]
            return f"{{{','.join(lines)}\n}}"

        return text

    @property
    def _all_rows(self) -> tuple[RenderedRows, ...]:
        return self._rows, self._pulled_rows, self._listed_rows

    def _topics_changed(self, group: str) -> None:
        if not self._has_listed:
            return
        if group in self._topics:
            self._listed_rows.changed(group)
        else:
            self._listed_rows.removed(group)

    def _topics_listed(self, group: str) -> list[str]:
        """5.x keeps each group's topics next to the offsets: those in the file, in their order, then newer ones."""
        topics = self._topics[group]
        listed = self._listed.get(group)
        old = [one for one in listed if one in topics] if isinstance(listed, list) else []
        return old + sorted(topics.difference(old))

    def _pulled_by(self) -> Iterator[tuple[str, str]]:
        """Topic and group of each pull offset."""
        for key in self._pulled:
            topic, _, group = key.partition(_SEPARATOR)
            yield topic, group

    def _add(self, topic: str, group: str) -> dict[int, int]:
        queues = self._table[topic + _SEPARATOR + group] = {}
        self._topics.setdefault(group, set()).add(topic)
        self._groups.setdefault(topic, set()).add(group)
        self._topics_changed(group)
        return queues

    def _put(self, key: str, queues: dict[int, int]) -> None:
        topic, separator, group = key.partition(_SEPARATOR)
        if separator and key not in self._table:
            self._add(topic, group)
        # A key that we do not understand is kept unchanged.
        self._table[key] = queues

    def _read(self, content: dict[str, Any]) -> None:
        table = _offsets_in(content, "offsetTable")
        others = {key: value for key, value in content.items() if key != "offsetTable"}
        for name in (_PULLED, _RESETS):
            if name in others:
                # As integer keys again, so that they are written without quotes, as before.
                others[name] = _offsets_in(content, name)
        self._has_listed = isinstance(others.get(_LISTED), dict)
        self._listed = others.pop(_LISTED) if self._has_listed else {}
        self._table = {}
        self._topics = {}
        self._groups = {}
        for key, queues in table.items():
            self._put(key, queues)
        self._rows.restart(self._table)
        self._pulled = dict(others.pop(_PULLED, {}))
        self._has_pulled = _PULLED in content
        self._pulled_rows.restart(self._pulled)
        self._listed_rows.restart(self._topics if self._has_listed else ())
        self._other_content = others


def _offsets_in(content: Mapping[str, Any], name: str) -> dict[str, dict[int, int]]:
    table: dict[str, dict[int, int]] = {}
    for key in table_in(content, name):
        queues = table_in(content[name], key)
        try:
            table[key] = {int(queue_id): int(offset) for queue_id, offset in queues.items()}
        except (TypeError, ValueError):
            raise BadContent(f"expected {key!r} to hold offsets by queue id") from None
    return table
