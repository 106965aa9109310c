"""An account of RocketMQ 4, and what its file says about it. No I/O; ``plain_files`` reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Final

from cometmq.access.identity import Identity
from cometmq.access.plain.addresses import Matches, matcher
from cometmq.base.errors import ConfigError
from cometmq.model.topic import DataVersion
from cometmq.protocol.request_signature import Verifier

KEY_CHARS_MIN: Final = 7
ACCOUNTS_MAX: Final = 100_000
"""In all files."""


class Perm(IntFlag):
    """RocketMQ's bits."""

    DENY = 1
    ANY = 2
    PUB = 4
    SUB = 8


_PERMS: Final = {
    "DENY": Perm.DENY,
    "PUB": Perm.PUB,
    "SUB": Perm.SUB,
    "PUB|SUB": Perm.PUB | Perm.SUB,
    "SUB|PUB": Perm.PUB | Perm.SUB,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAccount:
    """``given`` are the fields as the file has them, the secret among them; no repr shows it."""

    access_key: str
    secret_key: str = field(repr=False)
    identity: Identity
    verifier: Verifier = field(repr=False, compare=False)
    white: Matches | None = field(repr=False, compare=False)
    is_admin: bool = False
    default_topic: Perm = Perm.DENY
    default_group: Perm = Perm.DENY
    topics: Mapping[str, Perm] = field(default_factory=dict)
    groups: Mapping[str, Perm] = field(default_factory=dict)
    path: str = ""
    given: Mapping[str, Any] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlainTable:
    """What all files together say. The default file is the last of ``versions``, if it is there."""

    accounts: Mapping[str, PlainAccount] = field(default_factory=dict)
    white_texts: tuple[str, ...] = ()
    white: tuple[Matches, ...] = field(default=(), repr=False, compare=False)
    versions: Mapping[str, DataVersion] = field(default_factory=dict)


def check_keys(access_key: str | None, secret_key: str | None) -> None:
    """Raises ConfigError. RocketMQ's text has the secret in it, ours has not."""
    if min(len(access_key or ""), len(secret_key or "")) < KEY_CHARS_MIN:
        raise ConfigError(
            f"The accessKey={access_key} and its secretKey cannot be null and length should longer than 6"
        )


def parse_account(given: Mapping[str, Any], path: str = "") -> PlainAccount:
    """An entry of ``accounts``. Raises ConfigError if it is none."""
    access_key, secret_key = _text(given, "accessKey"), _text(given, "secretKey")
    check_keys(access_key, secret_key)
    is_admin = _text(given, "admin").lower() == "true"
    return PlainAccount(
        access_key=access_key,
        secret_key=secret_key,
        identity=Identity(access_key, is_super=is_admin),
        verifier=Verifier(secret_key),
        white=matcher(white) if (white := _text(given, "whiteRemoteAddress").strip()) else None,
        is_admin=is_admin,
        default_topic=parse_perm(_text(given, "defaultTopicPerm")),
        default_group=parse_perm(_text(given, "defaultGroupPerm")),
        topics=_perms(given, "topicPerms"),
        groups=_perms(given, "groupPerms"),
        path=path,
        given=given,
    )


def parse_perm(text: str) -> Perm:
    """What is none counts as DENY, as in RocketMQ."""
    return _PERMS.get(text.strip(), Perm.DENY)


def check_perm(text: str) -> None:
    """A permission or ``name=permission`` that a request sets. Raises ConfigError with RocketMQ's text."""
    if text.rpartition("=")[2].strip() not in _PERMS:
        raise ConfigError(
            f"Parse resource permission error for {text}.\n"
            "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
        )


def split_perm(text: str) -> tuple[str, str]:
    """The two parts of ``name=permission``. Raises ConfigError with RocketMQ's text."""
    parts = text.split("=")
    if len(parts) != 2:
        raise ConfigError(
            f"Parse Resource format error for {text}.\n"
            "The expected resource format is 'Res=Perm'. For example: topicA=SUB"
        )
    return parts[0].strip(), parts[1].strip()


def _perms(given: Mapping[str, Any], key: str) -> dict[str, Perm]:
    listed = given.get(key) or []
    if not isinstance(listed, list):
        raise ConfigError(f"{key} must be a list of name=permission")
    return {name: parse_perm(perm) for name, perm in (split_perm(str(one)) for one in listed)}


def _text(given: Mapping[str, Any], key: str) -> str:
    """YAML's numbers and switches count as text."""
    value = given.get(key)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
