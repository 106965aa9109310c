"""The decision of RocketMQ 5's access control: authentication, then authorization, with its texts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from cometmq.access.accounts.account import (
    Accounts,
    Acl,
    Decision,
    Entry,
    PolicyType,
    User,
    UserStatus,
)
from cometmq.access.identity import Identity
from cometmq.access.refusals import AccessRefused, account_refusal
from cometmq.access.rules.need import Action, Need, guarded_need, topic_need
from cometmq.access.rules.rule import Demand, Rule
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import ACCESS_KEY, Verifier

_NOWHERE: Final = ipaddress.IPv4Address("0.0.0.0")
_ANYBODY: Final = Identity("")
_STRANGER: Final = Identity("", is_stranger=True)
ALL_CLUSTERS: Final = "*"
"""Only ``Cluster:*`` and ``*`` match it."""
_ENABLED: Final = UserStatus.ENABLED
_NO_NAME: Final = "Authorization failed. Please verify your access rights and try again."


class AccountJudge:
    """``accounts`` may be replaced at any time.

    Args:
        rules: what each request needs, by its code.
        cluster: the name of the cluster that the server belongs to; ``ALL_CLUSTERS`` if it serves several.
        is_authenticating: whether signatures are checked; if not, everybody is who it says.
        is_authorizing: whether permissions are checked.
        not_authenticated, not_authorized: codes that are let through without.
        checks_records: whether a user needs a permission for records that a request names by their place, or that
            wait in a topic of the broker's own.
        for_strangers: codes that are served without a name while not all peers have accounts yet.
    """

    def __init__(
        self,
        accounts: Accounts,
        rules: Mapping[int, Rule],
        *,
        cluster: str,
        is_authenticating: bool = True,
        is_authorizing: bool = True,
        not_authenticated: frozenset[int] = frozenset(),
        not_authorized: frozenset[int] = frozenset(),
        checks_records: bool = True,
        for_strangers: frozenset[int] = frozenset(),
    ) -> None:
        self.accounts = accounts
        self._rules = rules
        self._cluster = cluster
        self._is_authenticating = is_authenticating
        self._is_authorizing = is_authorizing
        self._not_authenticated = not_authenticated
        self._not_authorized = not_authorized
        self._checks_records = checks_records
        self._for_strangers = for_strangers

    def identify(self, host: str, command: Command) -> Identity:
        if self._is_authenticating:
            try:
                return self._authenticated(command)
            except AccessRefused:
                if command.code in self._for_strangers and not (command.ext or {}).get(ACCESS_KEY):
                    return _STRANGER
                if command.code not in self._not_authenticated:
                    raise
                # Let through, but a name that nobody has proved gives no rights.
                return _ANYBODY
        name = (command.ext or {}).get(ACCESS_KEY, "")
        user = self.accounts.users.get(name)
        return Identity(name) if user is None else user.identity

    def signer(self, host: str, name: str) -> tuple[Identity, Verifier] | None:
        user = self.accounts.users.get(name) if self._is_authenticating and name else None
        if user is None or user.status is not _ENABLED:
            return None
        return user.identity, user.verifier

    def certified(self, name: str) -> Identity:
        return self._enabled(name).identity

    def permit(self, identity: Identity, host: str, command: Command) -> None:
        rule = self._rules.get(command.code)
        if rule is None or rule.demand is Demand.NEVER:
            raise account_refusal(f"request code {command.code} is served to nobody.")
        if rule.demand is Demand.SUPER:
            # Without authorization, too: it is about the secrets of all others.
            if not identity.is_super:
                raise account_refusal(f"User:{identity.name} is not a super user.")
            return
        if rule.demand is Demand.NOTHING or not self._is_authorizing:
            return
        if command.code in self._not_authorized:
            return
        # RocketMQ believes the name of the cluster that a request gives.
        needs = rule.needs(command, self._cluster)
        if self._checks_records:
            needs = [guarded_need(need, self._cluster) for need in needs]
        self._permit_all(identity, host, needs)

    def permit_topic(
        self, identity: Identity, host: str, topic: str, actions: frozenset[Action]
    ) -> None:
        if self._checks_records and self._is_authorizing:
            need = guarded_need(topic_need(topic, actions), self._cluster)
            self._permit_all(identity, host, [need])

    def keys(self, code: int) -> tuple[str, ...] | None:
        rule = self._rules.get(code)
        return None if rule is None else rule.keys

    def _authenticated(self, command: Command) -> Identity:
        ext = command.ext
        name = ext.get(ACCESS_KEY) if ext is not None else None
        if not name:
            raise account_refusal("username cannot be null.")
        user = self._enabled(name)
        if not user.verifier.is_signed(command):
            raise account_refusal("check signature failed.")
        return user.identity

    def _enabled(self, name: str) -> User:
        user = self.accounts.users.get(name)
        if user is None:
            raise account_refusal(f"User:{name} is not found.")
        if user.status is not UserStatus.ENABLED:
            raise account_refusal(f"User:{name} is disabled.")
        return user

    def _permit_all(self, identity: Identity, host: str, needs: list[Need]) -> None:
        if identity.is_stranger:
            return
        if not identity.name:
            raise account_refusal(_NO_NAME)
        if identity.name not in self.accounts.users:
            raise account_refusal(f"User:{identity.name} not found.")
        if identity.is_super:
            return
        acl = self.accounts.acls.get(identity.name)
        for need in needs:
            entry = None if acl is None else best_entry(acl, need, host)
            if entry is None:
                raise _denied(identity, need, host, "no matched policies")
            if entry.decision is not Decision.ALLOW:
                raise _denied(identity, need, host, "the decision is deny")


def best_entry(acl: Acl, need: Need, host: str) -> Entry | None:
    """The entry that decides about a need: the most specific of the custom policy, else of the default one.

    If several are equally specific, which migrated ones may be, one that denies wins.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = _NOWHERE
    for policy in (PolicyType.CUSTOM, PolicyType.DEFAULT):
        matching = list(_matching(acl.policies.get(policy, ()), need, address))
        if matching:
            return min(matching, key=_order)
    return None


def _matching(
    entries: tuple[Entry, ...],
    need: Need,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> Iterator[Entry]:
    return (entry for entry in entries if entry.matches(need, address))


def _order(entry: Entry) -> tuple[tuple[bool, bool, int], bool]:
    return entry.resource.rank, entry.decision is Decision.ALLOW


def _denied(identity: Identity, need: Need, host: str, why: str) -> AccessRefused:
    return account_refusal(
        f"User:{identity.name} has no permission to access {need} from {host}, {why}."
    )
