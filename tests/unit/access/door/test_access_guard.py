"""The guard before the processors: what it lets pass, what it keeps, what it forgets."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from cometmq.access.accounts.account import Accounts, User, UserStatus, UserType
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.accounts.changes import merge_acl
from cometmq.access.door import access_guard
from cometmq.access.door.access_guard import AccessGuard
from cometmq.access.identity import Identity
from cometmq.access.plain.addresses import Matches
from cometmq.access.plain.plain_account import PlainTable, parse_account
from cometmq.access.plain.plain_judge import PlainJudge
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import SUB
from cometmq.access.rules.request_rules import RULES
from cometmq.model.messages.batch import encode_batch
from cometmq.native.choice import twin
from cometmq.native.send_run import SendRun
from cometmq.protocol.bodies.auth import Acl, Policy, PolicyEntry
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import FRAME_BYTES_MAX, decode_bytes, encode_bytes
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


def signed(
    code: int, ext: dict[str, str] | None = None, name: str = "bob", body: bytes = b""
) -> Command:
    command = Command(code, ext, body)
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
    assert access_guard.host_of(peer) == host


def test_no_secret_in_the_log(judge: CountingJudge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    users = Accounts({"bob": User("bob", "hush-hush")})
    guard = AccessGuard(AccountJudge(users, RULES, cluster="C"))
    command = Command(3001, {"username": "x"}, b'{"password":"hush-hush"}')
    sign(command, "bob", "hush-hush")
    reply = guard.guard(connection(), command)
    assert reply is not None
    assert "hush-hush" not in caplog.text + str(reply.remark)


def test_a_certificate_stands_for_a_signature_if_it_may(judge: CountingJudge) -> None:
    peer = connection()
    peer.subject = "bob"
    unsigned = Command(310, {"b": "T"})
    assert AccessGuard(judge).guard(peer, unsigned) is not None
    guard = AccessGuard(judge, subject_is_account=True)
    for _ in range(2):
        assert guard.guard(peer, unsigned) is None
    assert guard.identify(peer, unsigned).name == "bob"
    assert guard.guard(peer, Command(310, {"b": "U"})) is not None
    # Who signs is who signs.
    assert guard.identify(peer, signed(310, {"b": "T"}, "root")).name == "root"
    wrong = Command(310, {"b": "T"})
    sign(wrong, "bob", "wrong")
    assert guard.guard(peer, wrong) is not None
    peer = connection(2)
    peer.subject = "eve"
    reply = guard.guard(peer, unsigned)
    assert reply is not None
    assert reply.remark == "User:eve is not found."
    assert guard.certified("") is guard.certified("eve") is None
    assert guard.certified("root") == Identity("root", is_super=True)


def test_strangers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    judge = AccountJudge(USERS, RULES, cluster="C", for_strangers=frozenset({310}))
    guard = AccessGuard(judge)
    assert guard.guard(connection(), Command(310, {"b": "T"})) is None
    assert "request without an account peer=127.0.0.1:1 code=310" in caplog.text
    assert guard.guard(connection(), Command(17, {"topic": "T"})) is not None


def test_whose_the_last_request_over_a_connection_was(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    peer = connection()
    assert guard.account_of(peer) == ""
    assert guard.guard(peer, signed(310, {"b": "T1"})) is None
    assert guard.account_of(peer) == "bob"
    wrong = signed(310, {"b": "T1"})
    wrong.body = b"changed"
    assert guard.guard(peer, wrong) is not None
    assert guard.account_of(peer) == "", "a wrong signature is nobody's"


def test_whether_an_account_may_publish_is_judged_anew_each_time(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    peer, other = connection(1), connection(2)
    assert not guard.may_publish(peer, "T")
    assert guard.guard(peer, signed(310, {"b": "T"})) is None
    assert guard.may_publish(peer, "T")
    assert not guard.may_publish(peer, "U")
    assert not guard.may_publish(other, "T")
    judge.accounts = Accounts({"root": USERS.users["root"]})
    guard.forget_all()
    assert not guard.may_publish(peer, "T")
    judge.accounts = USERS
    assert guard.may_publish(peer, "T")
    assert guard.guard(peer, Command(310, {"b": "T"})) is not None
    assert not guard.may_publish(peer, "T")


def test_what_a_broker_passes_on_counts_as_the_clients_own(judge: CountingJudge) -> None:
    guard = AccessGuard(judge)
    broker = connection()
    passed = signed(310, {"b": "T", "cometmqPassedOnFor": "bob"}, "root")
    assert guard.guard(broker, passed) is None
    assert guard.account_of(broker) == "bob"
    with pytest.raises(AccessRefused, match="Topic:U"):
        guard.check_topic(broker, passed, "U", SUB)
    for name, text in (("eve", "is not found"), ("bob", "no permission")):
        refused = guard.guard(
            broker, signed(215, {"topic": "T", "cometmqPassedOnFor": name}, "root")
        )
        assert refused is not None
        assert text in str(refused.remark)
    # Only a broker can say so: a client gains nothing by it.
    assert (
        guard.guard(broker, signed(215, {"topic": "T", "cometmqPassedOnFor": "root"})) is not None
    )
    # Nobody in between can take the name out.
    del passed.ext["cometmqPassedOnFor"]  # type: ignore[union-attr]
    refused = guard.guard(broker, passed)
    assert refused is not None
    assert refused.remark == "check signature failed."


sends = twin("sends")
SEND = {"a": "PG", "b": "T", "e": "0", "g": "1", "i": "UNIQ_KEY\x01k"}
BATCH = encode_batch([(0, b"x", b"UNIQ_KEY\x01k")])


def run_of(*commands: Command) -> SendRun:
    data = b"".join(map(encode_bytes, commands))
    run: SendRun | None = sends.cut_run(data, 0, FRAME_BYTES_MAX)
    assert run is not None
    assert run.end == len(data)
    return run


def send(topic: str = "T", name: str = "bob") -> Command:
    return signed(310, {**SEND, "b": topic}, name)


def changed(command: Command, **ext: str) -> Command:
    """After it was signed."""
    command.ext = {**(command.ext or {}), **ext}
    return command


@pytest.mark.skipif(sends is None, reason="cometmq was installed without twins")
class TestRuns:
    """Of a run, the guard vouches for what it would let pass, request by request."""

    @pytest.fixture
    def peer(self) -> Connection:
        return cast(Connection, connection())

    @pytest.fixture
    def guard(self, judge: CountingJudge, peer: Connection) -> AccessGuard:
        """It has decided about bob's sends to T and T2, and root's to T."""
        guard = AccessGuard(judge)
        for command in (send(), send(), send("T2"), send(name="root")):
            assert guard.guard(peer, command) is None
        return guard

    def test_all_that_was_decided_before(
        self, guard: AccessGuard, peer: Connection, judge: CountingJudge
    ) -> None:
        before = judge.permits
        run = run_of(send(), send("T2"), send(), send(), send(name="root"))
        assert guard.vouch(peer, run, 0, 5) == 5
        assert judge.permits == before
        assert guard.account_of(peer) == "root"
        assert guard.vouch(peer, run, 0, 4) == 4
        assert guard.account_of(peer) == "bob"
        assert guard.vouch(peer, run, 2, 2) == 2

    @pytest.mark.parametrize(
        "make",
        [
            lambda: send("T3"),
            lambda: send("U"),
            lambda: send(name="eve"),
            lambda: signed(320, {**SEND, "m": "true"}, body=BATCH),
            lambda: Command(310, SEND),
            lambda: changed(send(), b="T2"),
            lambda: changed(send(), AccessKey="root"),
            lambda: changed(send(), Signature="x" * 28),
            lambda: changed(send(), __ZONE_NAME="z"),
            lambda: changed(send(), cometmqPassedOn="1"),
            lambda: changed(send(name="root"), cometmqPassedOnFor="bob"),
        ],
        ids=lambda make: str(make.__code__.co_firstlineno),
    )
    def test_it_ends_before_what_has_to_be_looked_at(
        self, guard: AccessGuard, peer: Connection, make: Callable[[], Command]
    ) -> None:
        run = run_of(send(), send(), make(), send())
        assert guard.vouch(peer, run, 0, 4) == 2
        assert guard.vouch(peer, run, 2, 4) == 2
        assert guard.vouch(peer, run, 3, 4) == 4

    def test_a_new_decision_is_made_by_the_first_request(
        self, guard: AccessGuard, peer: Connection
    ) -> None:
        run = run_of(*[send("T3")] * 3)
        assert guard.vouch(peer, run, 0, 3) == 0
        assert guard.guard(peer, decode_bytes(run.frame(0))) is None
        assert guard.vouch(peer, run, 1, 3) == 3

    def test_other_connections_have_their_own(self, guard: AccessGuard) -> None:
        other = connection(2)
        assert guard.vouch(other, run_of(send()), 0, 1) == 0
        assert guard.account_of(other) == ""

    def test_accounts_that_changed(
        self, guard: AccessGuard, peer: Connection, judge: CountingJudge
    ) -> None:
        run = run_of(send())
        assert guard.vouch(peer, run, 0, 1) == 1
        bob = USERS.users["bob"]
        for users in (
            {},
            {"bob": User("bob", "other")},
            {"bob": replace(bob, status=UserStatus.DISABLED)},
        ):
            judge.accounts = Accounts(users, USERS.acls)
            guard.forget_all()
            assert guard.vouch(peer, run, 0, 1) == 0
            assert guard.guard(peer, decode_bytes(run.frame(0))) is not None
            assert guard.vouch(peer, run, 0, 1) == 0
        judge.accounts = USERS
        assert guard.vouch(peer, run, 0, 1) == 0
        assert guard.guard(peer, decode_bytes(run.frame(0))) is None
        assert guard.vouch(peer, run, 0, 1) == 1

    def test_where_nobody_signs(self, peer: Connection) -> None:
        judge = AccountJudge(USERS, RULES, cluster="C", is_authenticating=False)
        guard = AccessGuard(judge)
        for _ in range(2):
            assert guard.guard(peer, send()) is None
        assert guard.vouch(peer, run_of(send()), 0, 1) == 0

    def test_who_has_a_certificate(self, judge: CountingJudge) -> None:
        guard = AccessGuard(judge, subject_is_account=True)
        peer = FakeConnection()
        peer.subject = "bob"
        for _ in range(2):
            assert guard.guard(cast(Connection, peer), send()) is None
        assert guard.vouch(cast(Connection, peer), run_of(send()), 0, 1) == 0

    @pytest.mark.parametrize(("white", "end"), [({}, 1), ({"whiteRemoteAddress": "127.0.0.1"}, 0)])
    def test_accounts_of_rocketmq_4(
        self, peer: Connection, white: dict[str, str], end: int
    ) -> None:
        given = {"accessKey": "long-name", "secretKey": "a secret", "topicPerms": ["T=PUB"]}
        account = parse_account(given | white)
        judge = PlainJudge(PlainTable({"long-name": account}), RULES)
        guard = AccessGuard(judge)
        command = Command(310, SEND)
        sign(command, "long-name", "a secret")
        for _ in range(2):
            assert guard.guard(peer, command) is None
        run = run_of(command)
        assert guard.vouch(peer, run, 0, 1) == end
        assert guard.account_of(peer) == "long-name"
        everybody: Matches = lambda host: True  # noqa: E731
        judge.table = PlainTable({"long-name": account}, white=(everybody,))
        guard.forget_all()
        assert guard.guard(peer, command) is None
        assert guard.vouch(peer, run, 0, 1) == 0
