"""Users and their policies: the state that decisions are made from. Immutable; ``changes`` makes new ones."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from cometmq.access.accounts.resource import Resource
from cometmq.access.identity import Identity
from cometmq.access.rules.need import Action, Need
from cometmq.protocol.request_signature import Verifier

SUBJECT_PREFIX: Final = "User:"

USERS_MAX: Final = 10_000
ENTRIES_MAX: Final = 1000
"""Of one user, in both policies."""
NAME_CHARS_MAX: Final = 255
SECRET_CHARS_MAX: Final = 1024

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class UserType(StrEnum):
    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(StrEnum):
    ENABLED = "enable"
    DISABLED = "disable"


class PolicyType(StrEnum):
    CUSTOM = "Custom"
    DEFAULT = "Default"


class Decision(StrEnum):
    ALLOW = "Allow"
    DENY = "Deny"


@dataclass(frozen=True, slots=True)
class User:
    """The protocol signs with the password itself, so it is kept; no repr shows it."""

    username: str
    password: str = field(repr=False)
    user_type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLED
    verifier: Verifier = field(init=False, repr=False, compare=False)
    identity: Identity = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verifier", Verifier(self.password))
        object.__setattr__(self, "identity", Identity(self.username, is_super=self.is_super))

    @property
    def is_super(self) -> bool:
        return self.user_type is UserType.SUPER


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """``sources`` empty means from everywhere; ``source_texts`` are the same as they were given."""

    resource: Resource
    actions: tuple[Action, ...]
    decision: Decision
    source_texts: tuple[str, ...] = ()
    sources: tuple[Network, ...] = ()

    def matches(self, need: Need, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        if not self.resource.matches(need.kind, need.name):
            return False
        if Action.ALL not in self.actions and need.actions.isdisjoint(self.actions):
            return False
        return not self.sources or any(
            address.version == network.version and address in network for network in self.sources
        )


@dataclass(frozen=True, slots=True)
class Acl:
    """The entries of one user, by policy. A resource occurs once in a policy, but for migrated ones."""

    policies: Mapping[PolicyType, tuple[Entry, ...]] = field(default_factory=dict)

    @property
    def entry_count(self) -> int:
        return sum(map(len, self.policies.values()))


@dataclass(frozen=True, slots=True)
class Accounts:
    """Acls by username; a user without one may do nothing, unless it is a super user."""

    users: Mapping[str, User] = field(default_factory=dict)
    acls: Mapping[str, Acl] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Accounts users={len(self.users)} acls={len(self.acls)}>"
