"""Decisions about access, for any entries: denials only take away, and what is unknown never allows."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from cometmq.access.accounts.account import (
    Accounts,
    Acl,
    Decision,
    Entry,
    PolicyType,
    User,
)
from cometmq.access.accounts.account_judge import AccountJudge, best_entry
from cometmq.access.accounts.resource import Resource
from cometmq.access.plain.plain_account import PlainTable, parse_account
from cometmq.access.plain.plain_judge import PlainJudge
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import Action, Kind, Need
from cometmq.access.rules.request_rules import RULES
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign

NAMES = st.text("ab", max_size=3)
ACTIONS = st.sampled_from([Action.ALL, Action.PUB, Action.SUB, Action.GET])
RESOURCES = st.one_of(
    st.just(Resource(None, "", is_prefix=True)),
    st.builds(Resource, st.sampled_from([Kind.TOPIC, Kind.GROUP]), NAMES, st.booleans()),
)
NETWORKS = st.sampled_from(["10.0.0.0/24", "10.0.0.7/32", "::1/128", "0.0.0.0/0"])


def entries(decision: st.SearchStrategy[Decision]) -> st.SearchStrategy[Entry]:
    return st.builds(
        Entry,
        resource=RESOURCES,
        actions=st.lists(ACTIONS, min_size=1, max_size=3).map(tuple),
        decision=decision,
        sources=st.lists(NETWORKS.map(ipaddress.ip_network), max_size=2).map(tuple),
    )


ACLS = st.fixed_dictionaries(
    {
        policy: st.lists(entries(st.sampled_from(Decision)), max_size=6).map(tuple)
        for policy in PolicyType
    }
)
NEEDS = st.builds(
    Need,
    st.sampled_from([Kind.TOPIC, Kind.GROUP]),
    NAMES,
    st.frozensets(st.sampled_from([Action.PUB, Action.SUB, Action.GET]), min_size=1),
)
HOSTS = st.sampled_from(["10.0.0.7", "10.0.1.1", "::1", "nowhere"])


def is_allowed(policies: dict[PolicyType, tuple[Entry, ...]], need: Need, host: str) -> bool:
    entry = best_entry(Acl(policies), need, host)
    return entry is not None and entry.decision is Decision.ALLOW


@given(
    policies=ACLS,
    denial=entries(st.just(Decision.DENY)),
    policy=st.sampled_from(PolicyType),
    at=st.integers(0, 6),
    need=NEEDS,
    host=HOSTS,
)
def test_a_denial_never_allows(
    policies: dict[PolicyType, tuple[Entry, ...]],
    denial: Entry,
    policy: PolicyType,
    at: int,
    need: Need,
    host: str,
) -> None:
    old = policies[policy]
    more = {**policies, policy: (*old[:at], denial, *old[at:])}
    assert is_allowed(policies, need, host) or not is_allowed(more, need, host)


@given(policies=ACLS, need=NEEDS, host=HOSTS)
def test_the_order_of_entries_does_not_matter(
    policies: dict[PolicyType, tuple[Entry, ...]], need: Need, host: str
) -> None:
    turned = {policy: entries[::-1] for policy, entries in policies.items()}
    assert is_allowed(policies, need, host) == is_allowed(turned, need, host)


@given(
    code=st.integers(-5, 300_000),
    ext=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5),
    name=st.text(max_size=5),
)
def test_who_is_unknown_gets_nothing(code: int, ext: dict[str, str], name: str) -> None:
    users = Accounts({"somebody": User("somebody", "a secret")})
    account = parse_account({"accessKey": "somebody", "secretKey": "a secret"})
    for judge in (
        AccountJudge(users, RULES, cluster="C"),
        PlainJudge(PlainTable({"somebody": account}), RULES),
    ):
        for command in (Command(code, ext), signed(code, ext, name), signed(code, ext, "somebody")):
            try:
                judge.identify("10.0.0.7", command)
            except AccessRefused:
                continue
            raise AssertionError(command)


@given(code=st.integers(0, 300_000).filter(lambda code: code not in RULES))
def test_what_is_not_declared_is_for_nobody(code: int) -> None:
    users = Accounts({"somebody": User("somebody", "a secret")})
    judge = AccountJudge(users, RULES, cluster="C")
    command = Command(code)
    sign(command, "somebody", "a secret")
    identity = judge.identify("10.0.0.7", command)
    try:
        judge.permit(identity, "10.0.0.7", command)
    except AccessRefused:
        return
    raise AssertionError(code)


def signed(code: int, ext: dict[str, str], name: str) -> Command:
    command = Command(code, dict(ext))
    sign(command, name, "another secret")
    return command
