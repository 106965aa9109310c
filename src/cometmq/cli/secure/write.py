"""Puts a set-up on disk: all of it or nothing, and never over anything that is there."""

from __future__ import annotations

import datetime
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from cometmq.access.accounts.account_file import AccountFile
from cometmq.access.private_files import PRIVATE, replace_private
from cometmq.base.errors import ConfigError
from cometmq.base.settings import load
from cometmq.cli.secure.authority import Certificate, hosts_of, issue, new_authority
from cometmq.cli.secure.first_accounts import first_accounts
from cometmq.cli.secure.handshake import try_handshake
from cometmq.cli.secure.set_up import (
    AUTHORITY,
    AUTHORITY_KEY,
    BROKER_DATA,
    NAME_SERVER_DATA,
    SERVER,
    SERVER_KEY,
    SetUp,
    files,
    tls_values,
)
from cometmq.remoting.tls import TlsConfig

_PUBLIC = 0o644


class Given(NamedTuple):
    """Certificates of the user's own authority: paths of PEM files."""

    certificate: str
    key: str
    authority: str


def write(set_up: SetUp, given: Given | None, now: datetime.datetime) -> None:
    """Raises ConfigError, DiskFull, OSError: nothing was written."""
    target = set_up.directory
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ConfigError(
            f"{target} is there already and is not touched: name another directory, or give --renew for a new "
            "certificate"
        )
    certificates = _own_certificates(set_up, now) if given is None else _read(set_up, given)
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, file in files(set_up).items():
            mode = PRIVATE if file.is_private else _PUBLIC
            replace_private(building / name, file.text.encode(), mode)
        for name, data in certificates.items():
            replace_private(building / name, data, _mode(name))
        _write_accounts(set_up, building)
        # Over an empty directory, or none; fails over anything else.
        building.rename(target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def renew(directory: Path, hosts: tuple[str, ...], now: datetime.datetime) -> tuple[str, ...]:
    """A new certificate by the authority in the directory, for these hosts or the old ones, which it returns.

    Raises:
        ConfigError: there is no authority, or it cannot be used.
        OSError: a file cannot be read or written.
    """
    if not (directory / AUTHORITY_KEY).exists():
        raise ConfigError(
            f"{directory / AUTHORITY_KEY} is not there: the authority that issues certificates is elsewhere; ask "
            f"it for a new certificate, and put it to {directory / SERVER} and {directory / SERVER_KEY}"
        )
    authority = Certificate(
        *((directory / name).read_bytes() for name in (AUTHORITY, AUTHORITY_KEY))
    )
    meant = hosts or tuple(hosts_of((directory / SERVER).read_bytes()))
    certificate = issue(authority, meant, now)
    replace_private(directory / SERVER_KEY, certificate.key_pem, _mode(SERVER_KEY))
    replace_private(directory / SERVER, certificate.pem, _mode(SERVER))
    return meant


def _own_certificates(set_up: SetUp, now: datetime.datetime) -> dict[str, bytes]:
    authority = new_authority(now)
    certificate = issue(authority, set_up.hosts, now)
    return {
        AUTHORITY: authority.pem,
        AUTHORITY_KEY: authority.key_pem,
        SERVER: certificate.pem,
        SERVER_KEY: certificate.key_pem,
    }


def _read(set_up: SetUp, given: Given) -> dict[str, bytes]:
    """Raises ConfigError if clients would not accept them."""
    values = tls_values(set_up) | {
        "tls.server.certPath": given.certificate,
        "tls.server.keyPath": given.key,
        "tls.client.trustCertPath": given.authority,
    }
    for host in set_up.hosts:
        try_handshake(load(TlsConfig, values), host)
    return {
        AUTHORITY: Path(given.authority).read_bytes(),
        SERVER: Path(given.certificate).read_bytes(),
        SERVER_KEY: Path(given.key).read_bytes(),
    }


def _write_accounts(set_up: SetUp, directory: Path) -> None:
    accounts = first_accounts(dict(set_up.secret_of))
    for place in (f"{BROKER_DATA}/config", NAME_SERVER_DATA):
        file = AccountFile(directory / place)
        file.load()
        file.save(accounts)


def _mode(name: str) -> int:
    return PRIVATE if name in (AUTHORITY_KEY, SERVER_KEY) else _PUBLIC
