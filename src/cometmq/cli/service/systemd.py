"""The machine's systemd: unit files in their directory, and ``systemctl``."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from cometmq.base.errors import CometError, ConfigError
from cometmq.base.small_files import SystemSmallFiles
from cometmq.cli.service.unit import HEADER, Service

SECONDS_MAX: Final = 600.0
_SHOWN: Final = ("ActiveState", "SubState", "MainPID", "NRestarts", "StatusText")


class SystemdFailed(CometError):
    """``systemctl`` is not there, or says no."""


class State(NamedTuple):
    """What systemd says of a unit."""

    name: str
    active: str
    sub: str
    pid: int
    restarts: int
    text: str

    @property
    def is_active(self) -> bool:
        return self.active == "active"


class Account(NamedTuple):
    user_id: int
    group_id: int


def find_account(user: str) -> Account:
    """Raises ConfigError: there is no such user."""
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise ConfigError(
            f"there is no user {user}: create it with `useradd --system --user-group --home-dir /var/lib/cometmq "
            f"--shell /usr/sbin/nologin {user}`, or name another with --user"
        ) from None
    return Account(found.pw_uid, found.pw_gid)


def write_unit(directory: Path, name: str, text: str) -> bool:
    """Whether it was new. Raises ConfigError: somebody else's unit has this name."""
    path = directory / f"{name}.service"
    is_new = not path.exists()
    if not is_new and not is_ours(path):
        raise ConfigError(
            f"{path} was not written by `cometmq service install`: give another --name, or remove it"
        )
    SystemSmallFiles().replace(str(path), text.encode())
    path.chmod(0o644)
    return is_new


def make_directories(service: Service, account: Account) -> None:
    """Those that are not there yet, for the service alone. What is there keeps its owner. Raises OSError."""
    for name in (service.data, *service.writable):
        path = Path(name)
        if not path.exists():
            path.mkdir(parents=True, mode=0o750)
            os.chown(path, account.user_id, account.group_id)


def our_units(directory: Path) -> list[str]:
    """Names of the units that were installed by us."""
    return sorted(path.stem for path in directory.glob("*.service") if is_ours(path))


def is_ours(path: Path) -> bool:
    try:
        return path.is_file() and path.read_text(errors="replace").startswith(HEADER)
    except OSError:
        return False


def systemctl(*arguments: str) -> str:
    """What it prints. Raises SystemdFailed."""
    try:
        done = subprocess.run(
            ["systemctl", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SystemdFailed(f"systemctl {' '.join(arguments)}: {error}") from None
    if done.returncode:
        reason = done.stderr.strip() or f"exit code {done.returncode}"
        raise SystemdFailed(f"systemctl {' '.join(arguments)}: {reason}")
    return done.stdout


def state_of(name: str) -> State:
    """Raises SystemdFailed."""
    printed = systemctl("show", f"--property={','.join(_SHOWN)}", f"{name}.service")
    return read_state(name, printed)


def read_state(name: str, printed: str) -> State:
    values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    return State(
        name,
        values.get("ActiveState", "unknown"),
        values.get("SubState", "unknown"),
        _number(values.get("MainPID", "")),
        _number(values.get("NRestarts", "")),
        values.get("StatusText", ""),
    )


def _number(text: str) -> int:
    """What is not set is told in words."""
    return int(text) if text.isdecimal() else 0
