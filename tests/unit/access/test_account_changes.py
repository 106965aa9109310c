"""What requests about users and acls change, and how RocketMQ refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.access.accounts import changes
from cometmq.access.accounts.account import (
    ENTRIES_MAX,
    USERS_MAX,
    Accounts,
    PolicyType,
    User,
    UserStatus,
    UserType,
)
from cometmq.access.accounts.account_bodies import acl_body, decode_table, encode_table
from cometmq.access.accounts.resource import parse_resource
from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol.bodies import auth as bodies
from cometmq.protocol.refusal import Refused

NONE = Accounts()
TWO = Accounts({"root": User("root", "root-pw", UserType.SUPER), "bob1": User("bob1", "bob-pw")})


def refused(change: Any, *given: Any, **named: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        change(*given, **named)
    return caught.value.code, caught.value.remark


def user(**given: Any) -> bodies.User:
    return bodies.User(**given)


def acl(*entries: bodies.PolicyEntry, policy: str | None = None) -> bodies.Acl:
    return bodies.Acl(policies=[bodies.Policy(policy_type=policy, entries=list(entries))])


def entry(**given: Any) -> bodies.PolicyEntry:
    return bodies.PolicyEntry(
        **{"resource": "Topic:t", "actions": ["Pub"], "decision": "Allow", **given}
    )


def test_a_user_is_created_normal_and_enabled() -> None:
    made = changes.create_user(NONE, "amy", user(password="pw"), is_super=False)
    assert made.users == {"amy": User("amy", "pw", UserType.NORMAL, UserStatus.ENABLED)}
    assert NONE.users == {}


def test_creating_users_is_refused_as_by_rocketmq() -> None:
    given = user(password="pw")
    create = changes.create_user
    assert refused(create, TWO, " ", given, is_super=True) == (29, "The username is blank")
    assert refused(create, TWO, None, given, is_super=True) == (29, "The username is blank")
    assert refused(create, TWO, "bob1", given, is_super=True) == (16, "The user is existed")
    assert refused(create, TWO, "amy", user(), is_super=True) == (
        16,
        "password can not be blank",
    )
    super_user = user(password="pw", user_type="super")
    assert refused(create, TWO, "amy", super_user, is_super=False) == (
        1,
        "The super user can only be create by super user",
    )
    assert create(TWO, "amy", super_user, is_super=True).users["amy"].is_super
    assert refused(create, TWO, "a" * 256, given, is_super=True)[0] == 16
    assert refused(create, TWO, "amy", user(password="p" * 1025), is_super=True)[0] == 16
    full = Accounts(dict.fromkeys(map(str, range(USERS_MAX)), TWO.users["bob1"]))
    assert "no more are kept" in refused(create, full, "amy", given, is_super=True)[1]


def test_updating_users() -> None:
    update = changes.update_user
    made = update(TWO, "bob1", user(user_status="DISABLE"), is_super=False)
    assert made.users["bob1"] == User("bob1", "bob-pw", status=UserStatus.DISABLED)
    made = update(TWO, "bob1", user(password="new"), is_super=False)
    assert made.users["bob1"].password == "new"
    assert refused(update, TWO, "amy", user(), is_super=True) == (16, "The user is not exist")
    only_super = "The super user can only be update by super user"
    assert refused(update, TWO, "root", user(password="x"), is_super=False) == (16, only_super)
    assert refused(update, TWO, "bob1", user(user_type="Super"), is_super=False) == (
        1,
        only_super,
    )


def test_deleting_users() -> None:
    made = changes.merge_acl(TWO, "User:bob1", acl(entry()))
    made = changes.delete_user(made, "bob1", is_super=False)
    assert (list(made.users), made.acls) == (["root"], {})
    assert changes.delete_user(TWO, "amy", is_super=False) == TWO
    assert refused(changes.delete_user, TWO, "root", is_super=False) == (
        16,
        "The super user can only be update by super user",
    )


def test_entries_of_a_known_resource_are_replaced() -> None:
    made = changes.merge_acl(TWO, "User:bob1", acl(entry(), entry(resource="Topic:u")))
    made = changes.merge_acl(made, "User:bob1", acl(entry(actions=["Sub"], source_ips=["::1"])))
    made = changes.merge_acl(made, None, acl_for("User:bob1", policy="default"))
    [custom, default] = made.acls["bob1"].policies.items()
    assert [(str(one.resource), one.actions) for one in custom[1]] == [
        ("Topic:t", ("Sub",)),
        ("Topic:u", ("Pub",)),
    ]
    assert default[0] is PolicyType.DEFAULT


def acl_for(subject: str, policy: str) -> bodies.Acl:
    given = acl(entry(), policy=policy)
    given.subject = subject
    return given


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (bodies.Acl(), "The policies is empty."),
        (acl(), "The policy entries is empty."),
        (acl(entry(resource="Queue:q")), "The resource is null."),
        (acl(entry(resource=None)), "The resource is null."),
        (acl(entry(actions=[])), "The actions is empty."),
        (acl(entry(actions=["Fly"])), "The actions is empty."),
        (acl(entry(actions=["any"])), "The actions can not be Any."),
        (acl(entry(source_ips=["10.0.0.300"])), "The source ip is invalid."),
        (acl(entry(source_ips=[""])), "The source ip is empty."),
        (acl(entry(decision="Perhaps")), "The decision is null or illegal."),
    ],
)
def test_bad_acls_are_refused_as_by_rocketmq(given: bodies.Acl, text: str) -> None:
    assert refused(changes.merge_acl, TWO, "User:bob1", given) == (16, text)


def test_acls_of_nobody() -> None:
    assert refused(changes.merge_acl, TWO, "User:amy", acl(entry())) == (
        16,
        "The subject of User:amy is not exist.",
    )
    delete = changes.delete_acl
    assert refused(delete, TWO, "User:amy", None, None) == (16, "The subject is not exist.")
    assert refused(delete, TWO, "bob1", None, None) == (16, "The subject is not exist.")
    assert refused(delete, TWO, "User:bob1", None, None) == (16, "The acl is not exist.")


def test_deleting_acls() -> None:
    made = changes.merge_acl(TWO, "User:bob1", acl(entry(), entry(resource="Topic:u*")))
    one = changes.delete_acl(made, "User:bob1", None, "Topic:u*")
    assert [str(e.resource) for e in one.acls["bob1"].policies[PolicyType.CUSTOM]] == ["Topic:t"]
    assert changes.delete_acl(one, "User:bob1", "Default", "Topic:t") == one
    assert changes.delete_acl(one, "User:bob1", None, "Topic:t").acls == {}
    assert changes.delete_acl(made, "User:bob1", None, None).acls == {}


def test_entries_are_bounded() -> None:
    many = [entry(resource=f"Topic:t{number}") for number in range(ENTRIES_MAX + 1)]
    assert "at most" in refused(changes.merge_acl, TWO, "User:bob1", acl(*many))[1]


def test_an_acl_looks_as_in_rocketmq() -> None:
    made = changes.merge_acl(TWO, "User:bob1", acl(entry(resource="Topic:topic*")))
    body = acl_body("bob1", made.acls["bob1"])
    assert body is not None
    assert body.encode() == (
        b'{"policies":[{"entries":[{"actions":["Pub"],"decision":"Allow","resource":"Topic:topic*"}],'
        b'"policyType":"Custom"}],"subject":"User:bob1"}'
    )
    assert acl_body("bob1", made.acls["bob1"], "Group") is None


def test_a_replicas_table() -> None:
    made = changes.merge_acl(TWO, "User:bob1", acl(entry(source_ips=["10.0.0.0/8"])))
    assert decode_table(encode_table(made)) == made
    for bad in (
        b'{"users":[{"username":"u"}]}',
        b'{"users":[{"username":"u","password":"p","userType":"King"}]}',
        b'{"acls":[{"subject":"User:u","policies":[{"entries":[{}]}]}]}',
        b"[]",
    ):
        with pytest.raises(RemoteProtocolError):
            decode_table(bad)


@pytest.mark.parametrize("text", ["*", "Topic:t", "Topic:t*", "Group:*", "Cluster:c"])
def test_resources_are_written_as_they_are_read(text: str) -> None:
    assert str(parse_resource(text)) == text


@pytest.mark.parametrize("text", ["", "Topic", "Topic:", ":t", "Queue:t", "**"])
def test_what_is_no_resource(text: str) -> None:
    assert parse_resource(text) is None


def test_no_repr_shows_a_password() -> None:
    assert "bob-pw" not in repr(TWO) + repr(TWO.users) + repr(user(password="bob-pw"))
