"""A named table of configurations with a data version: the common part of ``topics`` and ``groups``.

All entries are in memory. A change marks the table and calls ``on_change``; the file is written by a later save:
``unsaved`` returns the blocking part of a save, for a worker thread. Fields that only other brokers know are kept and
written back.

Thread rule: the owner thread calls everything; ``entry`` and what ``unsaved`` returns may run in a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from cometmq.base.ports import Clock, Files
from cometmq.model.topic import DataVersion
from cometmq.store.meta.json_file import BadContent, JsonFile, pretty, table_in
from cometmq.store.meta.rendered_rows import RenderedRows, one_line, table_text

T = TypeVar("T", bound=msgspec.Struct)

PORTION: Final = 500
"""Entries of another broker's table that are looked at at once: a fraction of a millisecond."""

_NOTHING: Final[Mapping[str, Any]] = {}


class TableEntry(NamedTuple, Generic[T]):
    """An entry as another broker, or a file, tells it."""

    config: T
    unknown_fields: Mapping[str, Any]
    """What only brokers of another kind know; kept and written back."""


class ConfigTable(Generic[T]):
    FILE_NAME: ClassVar[str]
    TABLE_KEY: ClassVar[str]
    NAME_KEY: ClassVar[str]
    ENTRY_CLASS: ClassVar[type[msgspec.Struct]]

    def __init__(self, directory: str, files: Files, clock: Clock) -> None:
        self._directory = directory
        self._files = files
        self._clock = clock
        self._file = JsonFile(f"{directory}/{self.FILE_NAME}", files)
        self._entries: dict[str, T] = {}
        self._rows = RenderedRows(self._fields)
        self._unknown_fields: dict[str, Mapping[str, Any]] = {}
        self._other_content: dict[str, Any] = {}
        self._has_state_version = False
        self.change_count = 0
        """Grows with every change, so that caches of the table's content know when to refresh."""
        self._saved_count = 0
        self.version = DataVersion()
        self.on_change: Callable[[], None] | None = None

    def load(self) -> None:
        """Read the file, or its backup; without either, the table is empty.

        Raises:
            CorruptFile: neither can be read; nothing was changed.
        """
        self._files.make_directory(self._directory)
        self._file.load(self._read)

    def get(self, name: str) -> T | None:
        return self._entries.get(name)

    def names(self) -> list[str]:
        return list(self._entries)

    def all(self) -> dict[str, T]:
        """A copy of the table; its entries are shared and must not be changed."""
        return dict(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def put(self, config: T) -> None:
        """Add or replace one entry."""
        self.put_many([config])

    def put_many(self, configs: Iterable[T]) -> None:
        """The same for several, as one change of the version. An empty input is not a change."""
        count = 0
        for config in configs:
            name = self._name(config)
            self._entries[name] = config
            self._rows.changed(name)
            count += 1
        if count:
            self._changed()

    def remove(self, name: str) -> bool:
        """Returns whether it was there."""
        if self._entries.pop(name, None) is None:
            return False
        self._rows.removed(name)
        self._unknown_fields.pop(name, None)
        self._changed()
        return True

    def entry(self, name: str, fields: Mapping[str, Any]) -> TableEntry[T]:
        """An entry by its fields on the wire or in the file. Raises msgspec.ValidationError.

        Its config is the table's own if that is equal, so that ``replacing`` need not compare them once more.
        """
        config = msgspec.convert({**fields, self.NAME_KEY: name}, self.ENTRY_CLASS, strict=False)
        known = self.ENTRY_CLASS.__struct_encode_fields__
        unknown = {key: value for key, value in fields.items() if key not in known} or _NOTHING
        own = self._entries.get(name)
        return TableEntry(own if own is not None and own == config else cast(T, config), unknown)

    def replacing(
        self, entries: Mapping[str, TableEntry[T]], version: DataVersion
    ) -> Generator[None, None, Collection[str]]:
        """Become a copy of another broker's table, including its version. Returns the names that are gone.

        In portions: between two steps everybody has the old table, and with the last one all of the new. Entries whose
        config is the table's own, see ``entry``, are not rendered again.
        """
        changes = self.change_count
        configs: dict[str, T] = {}
        unknown_fields: dict[str, Mapping[str, Any]] = {}
        new: list[str] = []
        for count, (name, (config, unknown)) in enumerate(entries.items(), 1):
            configs[name] = config
            if unknown:
                unknown_fields[name] = unknown
            if self._entries.get(name) is not config or self._unknown(name) != unknown:
                new.append(name)
            if count % PORTION == 0:
                yield
        gone = [name for name in self._entries if name not in configs]
        for name in gone:
            self._rows.removed(name)
        # What somebody else has changed meanwhile is no longer what was compared.
        for name in new if changes == self.change_count else configs:
            self._rows.changed(name)
        self._entries, self._unknown_fields = configs, unknown_fields
        self.version = version
        self._mark()
        return gone

    def begin_state(self, state_version: int) -> None:
        """Another reign: the version says so from now on, and is newer than all of earlier reigns."""
        if self.version.state_version != state_version:
            self.version = msgspec.structs.replace(self.version, state_version=state_version)
            self._changed()

    def renew_version(self) -> None:
        """Change the version although the entries are the same, so that readers look at them again."""
        self._changed()

    def save_if_changed(self) -> None:
        """Write the file if the table has changed since the last save. Raises DiskFull, and then stays changed."""
        if (write := self.unsaved()) is not None:
            write()

    def unsaved(self) -> Callable[[], None] | None:
        """Render the table and return the disk part of a save, for a worker thread; None if nothing changed."""
        if self.change_count == self._saved_count:
            return None
        content = self._content()
        changes = self.change_count

        def write() -> None:
            self._file.save(content())
            self._saved_count = changes

        return write

    def freshen(self) -> bool:
        """Do a part of the work of the next ``unsaved`` or ``rows_of``. Whether there is more to do."""
        return self._rows.freshen()

    @property
    def is_fresh(self) -> bool:
        """Whether ``freshen`` would do nothing."""
        return self._rows.is_fresh

    def encode(self) -> bytes:
        """The content of the file."""
        return self._content()()

    def _content(self) -> Callable[[], bytes]:
        """The content of the file as it is now, put together by whoever calls what is returned."""
        content = {**self._other_content, "dataVersion": self._version_fields()}
        parts = {key: pretty(value, 1) for key, value in content.items()}
        rows = self._rows.rows(self._entries)

        def text() -> bytes:
            parts[self.TABLE_KEY] = table_text(rows)
            lines = [f"\n\t{pretty(key)}:{parts[key]}" for key in sorted(parts)]
            return f"{{{','.join(lines)}\n}}".encode()

        return text

    def rows_of(self, names: Iterable[str]) -> bytes:
        """Entries as a replica asks for them: a JSON object on one line."""
        return one_line(table_text(self._rows.rows(names)))

    def _changed(self) -> None:
        self.version = self.version.next(self._clock.wall_ms())
        self._mark()

    def _mark(self) -> None:
        self.change_count += 1
        if self.on_change is not None:
            self.on_change()

    def _name(self, config: T) -> str:
        raise NotImplementedError

    def _read(self, content: dict[str, Any]) -> None:
        entries: dict[str, T] = {}
        unknown_fields: dict[str, Mapping[str, Any]] = {}
        for name, fields in table_in(content, self.TABLE_KEY).items():
            if not isinstance(fields, dict):
                raise BadContent(f"expected entry {name!r} to be an object")
            entries[name], unknown = self.entry(name, fields)
            if unknown:
                unknown_fields[name] = unknown
        version = table_in(content, "dataVersion")
        self.version = msgspec.convert(version, DataVersion, strict=False)
        self._has_state_version = "stateVersion" in version
        self._other_content = {
            key: value
            for key, value in content.items()
            if key not in (self.TABLE_KEY, "dataVersion")
        }
        self._entries = entries
        self._unknown_fields = unknown_fields
        self._rows.restart(entries)

    def _fields(self, name: str) -> dict[str, Any]:
        builtins = msgspec.to_builtins(self._entries[name])
        known = {key: value for key, value in builtins.items() if value is not None}
        return dict(sorted({**self._unknown(name), **known}.items()))

    def _unknown(self, name: str) -> Mapping[str, Any]:
        return self._unknown_fields.get(name, _NOTHING)

    def _version_fields(self) -> dict[str, int]:
        fields = {"counter": self.version.counter}
        if self._has_state_version or self.version.state_version:
            fields["stateVersion"] = self.version.state_version
        fields["timestamp"] = self.version.timestamp
        return fields
