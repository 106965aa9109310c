"""The id that a controller gave this broker for good, in RocketMQ's file (``brokerIdentity``).

    brokerIdentity        cluster#brokerName#id
    brokerIdentity-temp   cluster#brokerName#id#checkCode    applied for, but not known to be granted

The check code says who applied. A broker that dies between the two applies again with the same one and gets the same
id, instead of leaving an id behind that nobody has.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cometmq.base.errors import ConfigError, CorruptFile
from cometmq.base.ports import Files

TEMPORARY_SUFFIX: Final = "-temp"


class Applied(NamedTuple):
    """An id that was applied for."""

    broker_id: int
    check_code: str


class IdentityFile:
    """Args:
    path: of ``brokerIdentity``.
    """

    def __init__(self, path: str, files: Files, *, cluster: str, broker_name: str) -> None:
        self._path = path
        self._files = files
        self._cluster = cluster
        self._broker_name = broker_name

    def load(self) -> int | None:
        """The id of this broker; None when it has none yet.

        Raises:
            ConfigError: the store belongs to another broker.
            CorruptFile: it cannot be read.
        """
        fields = self._read(self._path, 3)
        return None if fields is None else int(fields[2])

    def applied(self) -> Applied | None:
        """What was applied for and not answered. Raises as ``load``."""
        fields = self._read(self._path + TEMPORARY_SUFFIX, 4)
        return None if fields is None else Applied(int(fields[2]), fields[3])

    def apply(self, applied: Applied) -> None:
        """Note it before it is applied for. Raises DiskFull."""
        fields = (self._cluster, self._broker_name, str(applied.broker_id), applied.check_code)
        self._files.replace(self._path + TEMPORARY_SUFFIX, "#".join(fields).encode())

    def grant(self, broker_id: int) -> None:
        """The controller has given this id. Raises DiskFull."""
        fields = (self._cluster, self._broker_name, str(broker_id))
        self._files.replace(self._path, "#".join(fields).encode())
        self.withdraw()

    def withdraw(self) -> None:
        """Nothing is applied for any more."""
        if self._files.exists(self._path + TEMPORARY_SUFFIX):
            self._files.remove(self._path + TEMPORARY_SUFFIX)

    def _read(self, path: str, count: int) -> list[str] | None:
        if not self._files.exists(path):
            return None
        content = self._files.read(path).decode(errors="replace").strip()
        fields = content.split("#")
        if len(fields) != count or not fields[2].isdecimal() or int(fields[2]) < 1:
            raise CorruptFile(
                path,
                f"expected cluster#brokerName#id, found {content!r}",
                "Remove it to have the controller give this broker a new id",
            )
        if fields[:2] != [self._cluster, self._broker_name]:
            raise ConfigError(
                f"{path} says that this store belongs to broker {fields[1]} of cluster {fields[0]}, not to "
                f"{self._broker_name} of {self._cluster}: correct brokerName and brokerClusterName, or take another "
                f"storePathRootDir"
            )
        return fields
