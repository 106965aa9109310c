"""The guard before the processors: what it lets pass, what it keeps, what it forgets."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from cometmq.access.accounts.account import Accounts, User, UserType
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.accounts.changes import merge_acl
from cometmq.access.identity import Identity
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import SUB
from cometmq.access.rules.request_rules import RULES
from cometmq.broker.access import access_guard
from cometmq.broker.access.access_guard import AccessGuard
from cometmq.protocol.bodies.auth import Acl, Policy, PolicyEntry
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.request_signature import sign
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.testing.fake_connection import FakeConnection

ALLOWED = Acl(
    policies=[Policy(entries=[PolicyEntry(resource="Topic:T*", actions=["Pub"], decision="Allow")])]
)
USERS = merge_acl(
    Accounts({"bob": User("bob", "pw"), "root": User("root", "pw", UserType.SUPER)}),
    "User:bob",
    ALLOWED,
)


class CountingJudge(AccountJudge):
    permits = 0

    def permit(self, identity: Identity, host: str, command: Command) -> None:
        self.permits += 1
        super().permit(identity, host, command)


@pytest.fixture
def judge() -> CountingJudge:
    return CountingJudge(USERS, RULES, cluster="C")


def signed(code: int, ext: dict[str, str] | None = None, name: str = "bob") -> Command:
    command = Command(code, ext)
    sign(command, name, "pw")
    return command


def connection(port: int = 1) -> Any:
    return cast(Connection, FakeConnection(port))


def test_decisions_are_kept_per_connection_account_code_and_name(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    one, two = connection(1), connection(2)
    for _ in range(3):
        assert guard.guard(one, signed(310, {"b": "T", "a": "g"})) is None
    # The first about a code is never kept.
    assert judge.permits == 2
    for other in (
        (two, signed(310, {"b": "T"})),
        (one, signed(310, {"b": "T2"})),
        (one, signed(310, {"b": "T"}, "root")),
        (one, signed(320, {"b": "T"})),
    ):
        before = judge.permits
        assert guard.guard(*other) is None
        assert judge.permits == before + 1


def test_every_signature_is_checked(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    peer = connection()
    for _ in range(3):
        assert guard.guard(peer, signed(310, {"b": "T"})) is None
    forged = signed(310, {"b": "T"})
    assert forged.ext is not None
    forged.body = b"another"
    reply = guard.guard(peer, forged)
    assert reply is not None
    assert (reply.code, reply.remark) == (16, "check signature failed.")


def test_refusals_are_not_kept_and_logged(
    judge: CountingJudge, caplog: pytest.LogCaptureFixture
) -> None:
    guard = AccessGuard(judge)
    peer = connection()
    for _ in range(2):
        reply = guard.guard(peer, signed(310, {"b": "U"}))
        assert reply is not None
        assert reply.code == 16
    assert "access refused peer=127.0.0.1:1 code=310" in caplog.text
    assert judge.permits == 2


def test_a_change_of_accounts_counts_at_once(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    peer = connection()
    for _ in range(3):
        assert guard.guard(peer, signed(310, {"b": "T"})) is None
    judge.accounts = Accounts(USERS.users)
    guard.forget_all()
    assert guard.guard(peer, signed(310, {"b": "T"})) is not None


def test_what_is_kept_is_bounded(judge: CountingJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_guard, "DECISIONS_MAX", 8)
    guard = AccessGuard(judge)
    peer = connection()
    for number in range(50):
        assert guard.guard(peer, signed(310, {"b": f"T{number}"})) is None
    assert guard.guard(peer, signed(310, {"b": "T" * 10_000})) is None
    [known] = guard._peers.values()
    assert len(known.allowed) <= 8
    assert all(len(str(part)) < 600 for decision in known.allowed for part in decision)
    guard.forget(peer)
    assert guard._peers == {}
    peer.close("gone")
    assert guard.guard(peer, signed(310, {"b": "T"})) is None
    assert guard._peers == {}


def test_one_way_requests_are_dropped(judge: CountingJudge) -> None:
    done: list[Command] = []
    dispatcher = Dispatcher()
    dispatcher.add(310, lambda peer, command: done.append(command))
    dispatcher.guards.append(AccessGuard(judge).guard)
    peer = FakeConnection()
    for topic in ("U", "T"):
        command = signed(310, {"b": topic})
        command.flag |= FLAG_ONEWAY
        dispatcher.dispatch(cast(Connection, peer), command)
    assert peer.take() == []
    assert [command.ext["b"] for command in done if command.ext] == ["T"]


def test_topics_of_records(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    with pytest.raises(AccessRefused):
        guard.check_topic(connection(), signed(33), "T", SUB)
    guard.check_topic(connection(), signed(33, None, "root"), "T", SUB)
    assert guard.identify(connection(), signed(33)).name == "bob"


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("10.0.0.7:1", "10.0.0.7"),
        ("[::1]:1", "::1"),
        ("[::ffff:10.0.0.7]:1", "10.0.0.7"),
        ("[fe80::1%eth0]:1", "fe80::1"),
    ],
)
def test_the_address_of_a_peer(peer: str, host: str) -> None:
    assert access_guard._host(peer) == host


def test_no_secret_in_the_log(judge: CountingJudge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    users = Accounts({"bob": User("bob", "hush-hush")})
    guard = AccessGuard(AccountJudge(users, RULES, cluster="C"))
    command = Command(3001, {"username": "x"}, b'{"password":"hush-hush"}')
    sign(command, "bob", "hush-hush")
    reply = guard.guard(connection(), command)
    assert reply is not None
    assert "hush-hush" not in caplog.text + str(reply.remark)
