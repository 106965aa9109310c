"""A directory of backups of one store.

    log/00000000000000000000          the files of the log, which all backups share: they only grow
    backups/<name>/tables/config/…    topics, groups, offsets and so on, as they were
    backups/<name>/manifest           written last: without it the backup does not count
    lock

A backup that dies leaves bytes behind the newest manifest's log and a directory without a manifest. The next one
writes over the first and removes the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cometmq.base.errors import StoreError, UsageError
from cometmq.base.ports import Files
from cometmq.store.backup.manifest import Manifest, decode_manifest, encode_manifest
from cometmq.store.files.file_names import start_of
from cometmq.store.files.log_files import LogFiles, names_in


class Backups:
    def __init__(self, directory: str, files: Files) -> None:
        self.directory = directory.rstrip("/") or "/"
        self.log_directory = f"{self.directory}/log"
        self.files = files
        self._backups = f"{self.directory}/backups"

    def tables_of(self, name: str) -> str:
        return f"{self._backups}/{name}/tables"

    def create(self) -> None:
        """Make the directories. Raises UsageError: something else is in there."""
        names = set(names_in(self.directory, self.files)) - {"log", "backups", "lock", "lost+found"}
        if names:
            raise UsageError(
                f"{self.directory}: expected a directory of backups or an empty one, found {min(names)} in it; name "
                "another"
            )
        for path in (self.directory, self.log_directory, self._backups):
            self.files.make_directory(path)

    def check_exists(self) -> None:
        """Raises UsageError."""
        if not self.files.exists(self._backups):
            raise UsageError(
                f"{self.directory}: expected a directory of backups, but there is no {self._backups}; "
                "`cometmq backup create` makes it"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from adding and removing backups. Raises StoreError."""
        try:
            lock = self.files.lock(f"{self.directory}/lock")
        except StoreError:
            raise StoreError(
                f"{self.directory} is in use by another backup or restore: wait until it has ended"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def all(self) -> list[Manifest]:
        """Oldest first; those that did not finish are left out. Raises CorruptFile."""
        found = []
        for name in names_in(self._backups, self.files):
            path = self._manifest_path(name)
            if self.files.exists(path):
                found.append(decode_manifest(self.files.read(path), path))
        return sorted(found, key=lambda one: (one.taken_ms, one.name))

    def find(self, name: str | None) -> Manifest:
        """The backup of this name, or the newest. Raises UsageError."""
        self.check_exists()
        known = self.all()
        if not known:
            raise UsageError(f"{self.directory} holds no finished backup")
        if name is None:
            return known[-1]
        for manifest in known:
            if manifest.name == name:
                return manifest
        raise UsageError(
            f"{self.directory}: expected the name of a backup, such as {known[-1].name}, got {name!r}"
        )

    def add(self, manifest: Manifest) -> None:
        """From now on the backup counts. Raises DiskFull."""
        self.files.sync_directory(self._backups)
        self.files.replace(self._manifest_path(manifest.name), encode_manifest(manifest))

    def remove_unfinished(self) -> None:
        for name in names_in(self._backups, self.files):
            if not self.files.exists(self._manifest_path(name)):
                self.files.remove_tree(f"{self._backups}/{name}")

    def remove(self, name: str) -> None:
        """The manifest first: a backup without it does not count."""
        self.files.remove(self._manifest_path(name))
        self.files.sync_directory(f"{self._backups}/{name}")
        self.files.remove_tree(f"{self._backups}/{name}")

    def remove_unused_log(self) -> None:
        """Remove the files of the log that no backup needs any more."""
        kept = self.all()
        needed_from = min((one.log_start for one in kept), default=None)
        for name in names_in(self.log_directory, self.files):
            start = start_of(name)
            if start is not None and (needed_from is None or start < needed_from):
                self.files.remove(f"{self.log_directory}/{name}")

    def open_log(self) -> LogFiles:
        """``close`` it."""
        return LogFiles((self.log_directory,), self.files)

    def _manifest_path(self, name: str) -> str:
        return f"{self._backups}/{name}/manifest"
