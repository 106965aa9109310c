"""The text of a systemd unit. No I/O: what the machine has comes as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from cometmq.base.errors import ConfigError

HEADER: Final = "# Written by `cometmq service install`. Change it with `systemctl edit`, not here."


class Kind(StrEnum):
    NAME_SERVER = "namesrv"
    BROKER = "broker"
    CONTROLLER = "controller"


_NOUNS: Final = {
    Kind.NAME_SERVER: "name server",
    Kind.BROKER: "broker",
    Kind.CONTROLLER: "controller",
}
_DIRECTORY_KEYS: Final = {
    Kind.NAME_SERVER: ("controllerStorePath",),
    Kind.BROKER: ("storePathRootDir", "storePathCommitLog"),
    Kind.CONTROLLER: ("controllerStorePath",),
}
"""Settings that name a directory to write to."""
_FILE_KEYS: Final = (
    *("kvConfigPath", "accountPath", "accountKeyPath", "auditLogPath"),
    *("storePathEpochFile", "storePathBrokerIdentity"),
)
"""Settings that name a file to write, so that its directory has to be writable."""

_HOMES: Final = ("/home", "/root", "/run/user")
_DESCRIPTORS_MAX: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A server as it is to run. Paths are absolute.

    Args:
        name: of the unit, without ``.service``.
        program: the server's command.
        data: home directory of the service: where it keeps what its configuration says nothing about.
        writable: directories beside ``data`` that it writes to.
    """

    kind: Kind
    name: str
    program: str
    config_file: str
    user: str
    data: str
    writable: tuple[str, ...] = ()


def unit_text(service: Service) -> str:
    noun = _NOUNS[service.kind]
    sections = {
        "Unit": _unit(service, noun),
        "Service": [*_process(service), *_limits(service), *_hardening(service)],
        "Install": [("WantedBy", "multi-user.target")],
    }
    lines = [HEADER]
    for title, settings in sections.items():
        lines += ["", f"[{title}]"]
        lines += [f"{key}={value}" for key, value in settings]
    return "\n".join(lines) + "\n"


def writable_directories(
    kind: Kind, values: Mapping[str, str], config_file: str, data: str
) -> tuple[str, ...]:
    """Beside ``data``, where the server writes. Changes made over the network go to its configuration file.

    Raises:
        ConfigError: a path that depends on where the server is started.
    """
    wanted = [str(PurePosixPath(config_file).parent)]
    directories, files = (
        [_absolute(key, value) for key in keys if (value := values.get(key, "").strip())]
        for keys in (_DIRECTORY_KEYS[kind], _FILE_KEYS)
    )
    wanted += [*directories, *(str(PurePosixPath(file).parent) for file in files)]
    return tuple(_outermost([path for path in wanted if not _is_below(path, data)]))


def _unit(service: Service, noun: str) -> list[tuple[str, str]]:
    after = ["network-online.target"]
    if service.kind is not Kind.NAME_SERVER:
        # Only an order, should both be on this machine: brokers and controllers start without a name server.
        after.append("cometmq-namesrv.service")
    return [
        ("Description", f"CometMQ {noun}"),
        ("After", " ".join(after)),
        ("Wants", "network-online.target"),
        # A server that cannot start says why in its first lines: five of them are enough.
        ("StartLimitIntervalSec", "300"),
        ("StartLimitBurst", "5"),
    ]


def _process(service: Service) -> list[tuple[str, str]]:
    return [
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("WatchdogSec", "60"),
        ("User", service.user),
        ("Group", service.user),
        ("Environment", _quoted(f"HOME={service.data}")),
        ("WorkingDirectory", _escaped(service.data)),
        ("ExecStart", f"{_quoted(service.program)} -c {_quoted(service.config_file)}"),
        ("Restart", "on-failure"),
        ("RestartSec", "2"),
        # A broker that was killed reads the end of its log first, and all of it without a checkpoint.
        ("TimeoutStartSec", "30min" if service.kind is Kind.BROKER else "2min"),
        # It flushes, hands over and says goodbye. A kill after that loses nothing that SEND_OK has promised.
        ("TimeoutStopSec", "5min" if service.kind is Kind.BROKER else "1min"),
        ("KillMode", "mixed"),
    ]


def _limits(service: Service) -> list[tuple[str, str]]:
    limits = [("LimitNOFILE", str(_DESCRIPTORS_MAX)), ("LimitCORE", "0")]
    if service.kind is Kind.BROKER:
        limits += [
            # Of its log files, should a setting lock them into memory.
            ("LimitMEMLOCK", "infinity"),
            ("TasksMax", "4096"),
            # Others are killed first when memory is short: restarting a broker is dearer than most.
            ("OOMScoreAdjust", "-500"),
        ]
    return limits


def _hardening(service: Service) -> list[tuple[str, str]]:
    paths = (service.program, service.config_file, service.data, *service.writable)
    uses_homes = any(_is_below(path, home) for path in paths for home in _HOMES)
    writable = " ".join(_escaped(path) for path in (service.data, *service.writable))
    return [
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("ReadWritePaths", writable),
        ("ProtectHome", "read-only" if uses_homes else "yes"),
        ("UMask", "0027"),
        ("CapabilityBoundingSet", ""),
        ("AmbientCapabilities", ""),
        *(
            (key, "yes")
            for key in (
                *("PrivateTmp", "PrivateDevices", "ProtectClock", "ProtectControlGroups"),
                *("ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules"),
                *("ProtectKernelTunables", "LockPersonality", "RestrictNamespaces"),
                *("RestrictRealtime", "RestrictSUIDSGID", "RemoveIPC"),
            )
        ),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
        ("SystemCallArchitectures", "native"),
        ("SystemCallFilter", "@system-service"),
        ("SystemCallFilter", "~@privileged @resources"),
        # Raising its own limit of descriptors is all that it does with resources.
        ("SystemCallFilter", "prlimit64 setrlimit"),
        ("SystemCallErrorNumber", "EPERM"),
    ]


def _absolute(key: str, value: str) -> str:
    if not value.startswith("/"):
        raise ConfigError(
            f"{key}={value}: expected an absolute path, as a service has no directory that it is started in"
        )
    return str(PurePosixPath(value))


def _is_below(path: str, directory: str) -> bool:
    return PurePosixPath(path).is_relative_to(directory)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Without those that lie below others."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(_is_below(path, one) for one in kept):
            kept.append(path)
    return kept


def _escaped(path: str) -> str:
    """As a unit has it in a list: blanks, specifiers and backslashes are special there."""
    return path.replace("\\", "\\x5c").replace("%", "%%").replace(" ", "\\x20")


def _quoted(text: str) -> str:
    """As one argument of a command line."""
    text = text.replace("%", "%%").replace("$", "$$")
    if not any(sign in text for sign in " \"'\\"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
