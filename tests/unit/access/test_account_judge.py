"""The decision of RocketMQ 5's access control: who it is, what it may do, and the texts."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.access.accounts.account import Accounts, User, UserStatus, UserType
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.accounts.changes import merge_acl
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import PUB
from cometmq.access.rules.request_rules import RULES
from cometmq.access.rules.rocketmq_rules import ROCKETMQ_RULES
from cometmq.protocol.bodies.auth import Acl, Policy, PolicyEntry
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign

HOST = "10.0.0.7"


def entry(
    resource: str, *actions: str, decision: str = "Allow", ips: list[str] | None = None
) -> PolicyEntry:
    return PolicyEntry(resource=resource, actions=list(actions), decision=decision, source_ips=ips)


def accounts(*custom: PolicyEntry, default: tuple[PolicyEntry, ...] = ()) -> Accounts:
    """Those of ``bob``, who has these entries, and of others without any."""
    users = [
        User("admin", "admin-pw", UserType.SUPER),
        User("bob", "bob-pw"),
        User("gone", "gone-pw", status=UserStatus.DISABLED),
    ]
    made = Accounts({user.username: user for user in users})
    for policy, entries in (("Custom", custom), ("Default", default)):
        if entries:
            given = Acl(policies=[Policy(policy_type=policy, entries=list(entries))])
            made = merge_acl(made, "User:bob", given)
    return made


def signed(
    code: int, ext: dict[str, str] | None = None, name: str = "bob", secret: str | None = None
) -> Command:
    command = Command(code, ext)
    sign(command, name, secret or f"{name}-pw")
    return command


def decide(made: Accounts, command: Command, host: str = HOST, **settings: Any) -> None:
    judge = AccountJudge(made, settings.pop("rules", RULES), cluster="C", **settings)
    judge.permit(judge.identify(host, command), host, command)


def refusal(made: Accounts, command: Command, host: str = HOST, **settings: Any) -> str:
    with pytest.raises(AccessRefused) as caught:
        decide(made, command, host, **settings)
    assert caught.value.code == 16
    return caught.value.remark


def send(topic: str = "T") -> Command:
    return signed(310, {"b": topic})


def test_who_it_is() -> None:
    made = accounts(entry("Topic:T", "Pub"))
    decide(made, send())
    assert refusal(made, Command(310)) == "username cannot be null."
    assert refusal(made, Command(310, {"b": "T"})) == "username cannot be null."
    assert refusal(made, signed(310, name="eve")) == "User:eve is not found."
    assert refusal(made, signed(310, name="gone")) == "User:gone is disabled."
    assert refusal(made, signed(310, {"b": "T"}, secret="x")) == "check signature failed."
    unsigned = Command(310, {"b": "T", "AccessKey": "bob"})
    assert refusal(made, unsigned) == "check signature failed."


def test_super_users_may_do_everything_that_is_served() -> None:
    made = accounts()
    for code in (310, 25, 3001, 29007, 17, 54):
        decide(made, signed(code, {"b": "T", "topic": "T"}, "admin"))
    assert "served to nobody" in refusal(made, signed(9999, None, "admin"))
    assert "served to nobody" in refusal(made, signed(40, None, "admin"))


def test_no_policy_matches() -> None:
    text = "User:bob has no permission to access Topic:T from 10.0.0.7, no matched policies."
    assert refusal(accounts(), send()) == text
    assert refusal(accounts(entry("Topic:U", "Pub")), send()) == text
    assert refusal(accounts(entry("Topic:T", "Sub")), send()) == text
    assert refusal(accounts(entry("Group:T", "Pub")), send()) == text
    assert refusal(accounts(entry("Topic:T", "Pub", ips=["10.0.1.0/24"])), send()) == text


def test_a_denial_says_so() -> None:
    made = accounts(entry("Topic:T", "Pub", decision="Deny"), entry("Topic:*", "All"))
    assert refusal(made, send()) == (
        "User:bob has no permission to access Topic:T from 10.0.0.7, the decision is deny."
    )
    decide(made, send("U"))


@pytest.mark.parametrize(
    ("allows", "denies"),
    [
        (("Topic:T",), ("Topic:*", "*", "Topic:T*")),
        (("Topic:Tab*",), ("Topic:Ta*", "Topic:*", "*")),
        (("Topic:*",), ("*",)),
    ],
)
def test_the_most_specific_entry_decides(allows: tuple[str, ...], denies: tuple[str, ...]) -> None:
    entries = [
        *(entry(one, "Pub", decision="Deny") for one in denies),
        *(entry(one, "Pub") for one in allows),
    ]
    name = "T" if allows == ("Topic:T",) else "Table"
    decide(accounts(*entries), send(name))
    decide(accounts(*reversed(entries)), send(name))


def test_the_default_policy_counts_if_the_custom_one_says_nothing() -> None:
    default = (entry("Topic:*", "Pub", decision="Deny"),)
    assert "the decision is deny" in refusal(accounts(default=default), send())
    decide(accounts(entry("*", "Pub"), default=default), send())
    decide(accounts(entry("Topic:U", "Pub"), default=(entry("Topic:T", "All"),)), send())


def test_sources() -> None:
    made = accounts(entry("Topic:T", "Pub", ips=["10.0.0.0/24", "fe80::1", "192.168.1.5"]))
    decide(made, send(), "10.0.0.200")
    decide(made, send(), "192.168.1.5")
    decide(made, send(), "fe80::1")
    for host in ("10.0.1.1", "192.168.1.6", "fe80::2", "unconnected"):
        assert "no matched policies" in refusal(made, send(), host)


def test_all_resources_must_pass() -> None:
    pull = signed(11, {"topic": "T", "consumerGroup": "g"})
    assert "Group:g" in refusal(accounts(entry("Topic:T", "Sub")), pull)
    assert "Topic:T" in refusal(accounts(entry("Group:g", "Sub")), pull)
    decide(accounts(entry("Topic:T", "Sub"), entry("Group:g", "Sub")), pull)


def test_operators() -> None:
    assert "Cluster:C" in refusal(accounts(entry("Topic:*", "All")), signed(25))
    assert "Cluster:C" in refusal(accounts(entry("Cluster:D", "All")), signed(25))
    decide(accounts(entry("Cluster:C", "Update")), signed(25))
    # RocketMQ believes the name of the cluster that a request carries.
    lie = signed(25, {"clusterName": "D"})
    assert "Cluster:C" in refusal(accounts(entry("Cluster:D", "All")), lie)
    decide(accounts(), signed(25), rules=ROCKETMQ_RULES)
    assert refusal(accounts(entry("*", "All")), signed(29007)) == "User:bob is not a super user."


def test_secrets_of_all_need_a_super_user_even_without_authorization() -> None:
    decide(accounts(), send(), is_authorizing=False)
    assert "super user" in refusal(accounts(), signed(29007), is_authorizing=False)


def test_white_lists() -> None:
    made = accounts(entry("Topic:T", "Pub"))
    code = frozenset({310})
    decide(made, Command(310, {"b": "T"}), not_authenticated=code, not_authorized=code)
    # A name that nobody has proved gives no rights.
    claimed = Command(310, {"b": "T", "AccessKey": "admin"})
    assert refusal(made, claimed, not_authenticated=code) == (
        "Authorization failed. Please verify your access rights and try again."
    )
    decide(made, send(), not_authenticated=code)
    decide(accounts(), send(), not_authorized=code)
    assert "check signature" in refusal(
        made, signed(310, {"b": "T"}, secret="x"), not_authorized=code
    )


def test_authorization_alone_goes_by_the_name() -> None:
    made = accounts(entry("Topic:T", "Pub"))
    alone: dict[str, Any] = {"is_authenticating": False}
    decide(made, Command(310, {"b": "T", "AccessKey": "bob"}), **alone)
    assert refusal(made, Command(310, {"b": "T", "AccessKey": "eve"}), **alone) == (
        "User:eve not found."
    )
    assert refusal(made, Command(310, {"b": "T"}), **alone).startswith("Authorization failed.")


def test_records_named_by_their_place() -> None:
    made = accounts(entry("Topic:T", "Pub"))
    judge = AccountJudge(made, RULES, cluster="C")
    me = judge.identify(HOST, signed(37))
    judge.permit_topic(me, HOST, "T", PUB)
    with pytest.raises(AccessRefused):
        judge.permit_topic(me, HOST, "U", PUB)
    for loose in (
        AccountJudge(made, RULES, cluster="C", checks_records=False),
        AccountJudge(made, RULES, cluster="C", is_authorizing=False),
    ):
        loose.permit_topic(me, HOST, "U", PUB)


def test_strangers() -> None:
    made = accounts(entry("Topic:T", "Pub"))
    mixed: dict[str, Any] = {"for_strangers": frozenset({310, 29007})}
    decide(made, Command(310, {"b": "T"}), **mixed)
    decide(made, Command(310, None), **mixed)
    judge = AccountJudge(made, RULES, cluster="C", **mixed)
    stranger = judge.identify(HOST, Command(310))
    assert stranger.is_stranger
    judge.permit_topic(stranger, HOST, "U", PUB)
    # Who says who it is must prove it, and has no more rights than it has.
    assert refusal(made, signed(310, {"b": "T"}, secret="x"), **mixed) == "check signature failed."
    assert "no matched policies" in refusal(made, signed(310, {"b": "U"}), **mixed)
    assert refusal(made, Command(25), **mixed) == "username cannot be null."
    assert "is not a super user" in refusal(made, Command(29007), **mixed)


OWN_TOPICS = (
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "rmq_sys_wheel_timer",
    "rmq_sys_REVIVE_LOG_DefaultCluster",
)


@pytest.mark.parametrize("topic", OWN_TOPICS)
def test_where_messages_of_all_topics_wait_nobody_reads_by_a_right_on_topics(topic: str) -> None:
    """Delayed or half messages of a topic that is denied lie there, too."""
    made = accounts(
        entry("Topic:*", "All"), entry("Group:*", "All"), entry("Topic:T", "All", decision="Deny")
    )
    for code in (11, 12, 361, 29001, 200050, 200052):
        command = signed(code, {"topic": topic, "consumerGroup": "g"})
        assert "access Cluster:C " in refusal(made, command)
        decide(made, command, rules=ROCKETMQ_RULES, checks_records=False)
    operator = accounts(entry("Cluster:*", "Get"), entry("Group:*", "All"))
    decide(operator, signed(11, {"topic": topic, "consumerGroup": "g"}))
