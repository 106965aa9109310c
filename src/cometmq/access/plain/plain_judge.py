"""The decision of RocketMQ 4's access control, in its order and with its texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.access.identity import Identity
from cometmq.access.plain.plain_account import Perm, PlainAccount, PlainTable
from cometmq.access.refusals import plain_refusal
from cometmq.access.rules.need import Action, Kind, Need, guarded_need, topic_need
from cometmq.access.rules.rule import Demand, Rule
from cometmq.model.names import TRACE_TOPIC
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import ACCESS_KEY, Verifier

_ANYBODY: Final = Identity("", is_free=True)
_CHANGES: Final = frozenset({Action.CREATE, Action.UPDATE, Action.DELETE})


class PlainJudge:
    """``table`` may be replaced at any time.

    Args:
        rules: what each request needs, by its code.
        checks_records: whether an account needs a permission for records that a request names by their place, or
            that wait in a topic of the broker's own.
    """

    def __init__(
        self, table: PlainTable, rules: Mapping[int, Rule], *, checks_records: bool = True
    ) -> None:
        self.table = table
        self._rules = rules
        self._checks_records = checks_records

    def identify(self, host: str, command: Command) -> Identity:
        table, ext = self.table, command.ext
        if table.white and any(matches(host) for matches in table.white):
            return _ANYBODY
        key = None if ext is None else ext.get(ACCESS_KEY)
        if not key:
            raise plain_refusal("No accessKey is configured")
        account = table.accounts.get(key)
        if account is None:
            raise plain_refusal(f"No acl config for {key}")
        if account.white is not None and account.white(host):
            return Identity(key, is_free=True)
        if not account.verifier.is_signed(command):
            raise plain_refusal(f"Check signature failed for accessKey={key}")
        return account.identity

    def signer(self, host: str, name: str) -> tuple[Identity, Verifier] | None:
        table = self.table
        if table.white and any(matches(host) for matches in table.white):
            return None
        account = table.accounts.get(name) if name else None
        if account is None or (account.white is not None and account.white(host)):
            return None
        return account.identity, account.verifier

    def certified(self, name: str) -> Identity:
        account = self.table.accounts.get(name)
        if account is None:
            raise plain_refusal(f"No acl config for {name}")
        return account.identity

    def permit(self, identity: Identity, host: str, command: Command) -> None:
        rule = self._rules.get(command.code)
        if rule is None or rule.demand is Demand.NEVER:
            raise plain_refusal(f"request code={command.code} is served to nobody")
        if identity.is_free or rule.demand is Demand.NOTHING:
            return
        # The name of the cluster does not matter: in RocketMQ 4 there is only an administrator or none.
        needs = [] if rule.demand is Demand.SUPER else rule.needs(command, "")
        needs = [need for need in needs if not _is_trace(need)]
        if self._checks_records:
            needs = [guarded_need(need, "") for need in needs]
        if not identity.is_super and (
            rule.demand is Demand.SUPER or any(_perm_of(need) is None for need in needs)
        ):
            raise plain_refusal(
                f"Need admin permission for request code={command.code}, but accessKey={identity.name} is not"
            )
        self._check_all(identity, needs)

    def permit_topic(
        self, identity: Identity, host: str, topic: str, actions: frozenset[Action]
    ) -> None:
        if self._checks_records and not identity.is_free:
            self._check_all(identity, [topic_need(topic, actions)])

    def keys(self, code: int) -> tuple[str, ...] | None:
        rule = self._rules.get(code)
        return None if rule is None else rule.keys

    def _check_all(self, identity: Identity, needs: list[Need]) -> None:
        account = self.table.accounts[identity.name]
        if account.is_admin and not account.topics and not account.groups:
            return
        for need in needs:
            perm = _perm_of(need)
            if perm is not None and not _has(account, need, perm):
                raise plain_refusal(f"No default permission for {need.kind.lower()}:{need.name}")


def _has(account: PlainAccount, need: Need, perm: Perm) -> bool:
    if need.kind is Kind.GROUP:
        given = account.groups.get(need.name, account.default_group)
    else:
        given = account.topics.get(need.name, account.default_topic)
    if given & Perm.DENY:
        return False
    return bool(given & (Perm.PUB | Perm.SUB) if perm is Perm.ANY else given & perm)


def _perm_of(need: Need) -> Perm | None:
    """RocketMQ 4 knows two permissions; None if an administrator is needed."""
    if need.kind is Kind.CLUSTER:
        return None
    may_publish, may_subscribe = Action.PUB in need.actions, Action.SUB in need.actions
    if may_publish and not may_subscribe:
        return Perm.PUB
    if may_subscribe and not may_publish:
        return Perm.SUB
    if not may_publish and need.actions & _CHANGES:
        return None
    return Perm.ANY


def _is_trace(need: Need) -> bool:
    """Every client may trace."""
    return need.kind is Kind.TOPIC and need.name == TRACE_TOPIC and Action.PUB in need.actions
