"""Reads and writes the account files of a RocketMQ 4 installation: ``conf/plain_acl.yml`` and ``conf/acl/**``.

The same access key in two files: the first file read counts, those below ``acl`` before the default one. A change is
noticed by modification time and by the number of files; then all are read again. Called from worker threads, by one at
a time.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cometmq.access.plain.addresses import matcher
from cometmq.access.plain.plain_account import (
    ACCOUNTS_MAX,
    PlainAccount,
    PlainTable,
    parse_account,
)
from cometmq.access.private_files import PRIVATE, replace_private
from cometmq.base.errors import ConfigError
from cometmq.model.topic import DataVersion

log = logging.getLogger("cometmq.access")

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
FILES_MAX: Final = 1000
_SUFFIXES: Final = (".yml", ".yaml")


class PlainFiles:
    """Args: home: RocketMQ's home directory."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.default_path = home / "conf" / "plain_acl.yml"
        self._folder = home / "conf" / "acl"
        self._seen: Mapping[Path, int] = {}

    def load(self) -> PlainTable:
        """Raises ConfigError: there is no file, or one cannot be used; the message has no secret in it."""
        seen = self._times()
        if not seen:
            raise ConfigError(
                f"there are no accounts: neither {self.default_path} nor a file below {self._folder} exists"
            )
        accounts: dict[str, PlainAccount] = {}
        white: list[str] = []
        versions: dict[str, DataVersion] = {}
        for path, time_ns in seen.items():
            content = read_content(path)
            try:
                white += _white(content)
                for account in _accounts(content, str(path)):
                    if account.access_key in accounts:
                        log.warning(
                            "account ignored, another file has it access_key=%s file=%s",
                            account.access_key,
                            path,
                        )
                    accounts.setdefault(account.access_key, account)
                matchers = tuple(matcher(text) for text in white)
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}") from None
            versions[str(path)] = _version(content, time_ns)
        if len(accounts) > ACCOUNTS_MAX:
            raise ConfigError(f"{len(accounts)} accounts, no more than {ACCOUNTS_MAX} are read")
        self._seen = seen
        return PlainTable(accounts, tuple(white), matchers, versions)

    def changed(self) -> PlainTable | None:
        """What the files say now, if that may be something else than at the last look.

        Raises:
            ConfigError: a file cannot be used, or has become empty.
        """
        seen = self._times()
        if seen == self._seen:
            return None
        # Noted before it is read: content that cannot be used is complained about once, not every few seconds.
        self._seen = seen
        for path in seen:
            if path.exists() and not path.stat().st_size:
                # Most likely somebody is writing it. Read as it is, all its accounts would be gone for a moment.
                raise ConfigError(
                    f"{path} is empty; expected accounts, or globalWhiteRemoteAddresses"
                )
        return self.load()

    def edit(self, path: Path, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Rewrite a file; comments in it are lost, as in RocketMQ. Raises ConfigError, DiskFull, OSError."""
        import yaml

        content = read_content(path) if path.exists() else {}
        text = yaml.safe_dump(dict(change(content)), sort_keys=False, allow_unicode=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_private(path, text.encode(), mode)

    def known(self, path: str | None) -> Path:
        """One of the files, the default one if none is named. Raises ConfigError: it is none of ours."""
        if not path:
            return self.default_path
        for known in self._times():
            if str(known) == path:
                return known
        raise ConfigError(f"{path} is no account file of this broker")

    def _times(self) -> dict[Path, int]:
        """Modification times of all files, in the order in which they are read."""
        try:
            folder = sorted(
                path
                for path in self._folder.rglob("*")
                if path.suffix in _SUFFIXES and path.is_file()
            )
            if len(folder) > FILES_MAX:
                raise ConfigError(f"{len(folder)} files below {self._folder}, most are {FILES_MAX}")
            paths = [*folder, *([self.default_path] if self.default_path.is_file() else [])]
            return {path: path.stat().st_mtime_ns for path in paths}
        except OSError as error:
            raise ConfigError(f"the account files cannot be read: {error}") from None


def read_content(path: Path) -> dict[str, Any]:
    """What a YAML file says. Raises ConfigError."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    return parse_content(data, path)


def parse_content(data: bytes, path: Path) -> dict[str, Any]:
    """What the bytes of a YAML file say. Raises ConfigError."""
    try:
        import yaml
    except ImportError:
        raise ConfigError(
            "account files need the package PyYAML: pip install 'cometmq[accounts]'"
        ) from None
    try:
        content = yaml.safe_load(data)
    except yaml.MarkedYAMLError as error:
        # Its text quotes the line, which may hold a secret.
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 0
        raise ConfigError(f"{path}, line {line}: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        # The last for a date like 2001-99-99, and for numbers of thousands of digits.
        raise ConfigError(f"{path} is no YAML") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must be a mapping with accounts and globalWhiteRemoteAddresses")
    return content


def _accounts(content: Mapping[str, Any], path: str) -> list[PlainAccount]:
    listed = content.get("accounts") or []
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise ConfigError("accounts must be a list of accounts")
    return [parse_account(one, path) for one in listed]


def _white(content: Mapping[str, Any]) -> list[str]:
    listed = content.get("globalWhiteRemoteAddresses") or []
    if not isinstance(listed, list):
        raise ConfigError("globalWhiteRemoteAddresses must be a list of addresses")
    return [str(one) for one in listed if one is not None]


def _version(content: Mapping[str, Any], time_ns: int) -> DataVersion:
    match content.get("dataVersion"):
        case [{"counter": int(counter), "timestamp": int(timestamp)}, *_]:
            return DataVersion(counter=counter, timestamp=timestamp)
    return DataVersion(counter=0, timestamp=time_ns // 1_000_000)
