"""Who may connect to the port for slaves: hosts that have proved to be a broker's, for a while."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cometmq.access.accounts.account import Accounts, User, UserType
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.door.access_guard import AccessGuard
from cometmq.access.rules.request_rules import RULES
from cometmq.base.errors import ConnectFailed
from cometmq.broker.access.replica_door import HOSTS_MAX, NOT_PROVED, PROOF_SECONDS, ReplicaDoor
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_connection import FakeConnection

USERS = Accounts({"bob": User("bob", "pw"), "inner": User("inner", "pw", UserType.SUPER)})


class Caller:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def call(self, address: str, command: Command, timeout: float = 3.0) -> Command:
        self.asked.append(f"{address} {command.code}")
        raise ConnectFailed("nobody is there")


class Scene:
    def __init__(self, **options: bool) -> None:
        self.clock = FakeClock()
        self.caller = Caller()
        judge = AccountJudge(USERS, RULES, cluster="C", is_authorizing=False)
        guard = AccessGuard(judge, subject_is_account=True)
        settings: dict[str, Any] = {"is_signing": True, "lets_strangers": False, **options}
        self.door = ReplicaDoor(guard, self.caller, self.clock, **settings)
        self.dispatcher = Dispatcher()
        self.dispatcher.add(21, lambda connection, command: command.reply())
        self.dispatcher.add(26, lambda connection, command: command.reply())
        self.door.watch(self.dispatcher)

    def ask(self, name: str, code: int = 21, host: str = "10.0.0.7") -> None:
        command = Command(code)
        sign(command, name, "pw")
        peer = FakeConnection()
        peer.peer = f"{host}:4000"
        self.dispatcher.dispatch(cast(Connection, peer), command)
        assert [reply.code for reply in peer.sent] == [0]


def test_a_super_user_that_asks_like_a_slave_opens_the_port_to_its_host_for_a_while() -> None:
    scene = Scene()
    assert scene.door.refusal("10.0.0.7", "") == NOT_PROVED
    scene.ask("bob")
    scene.ask("inner", code=26)
    assert scene.door.refusal("10.0.0.7", "") == NOT_PROVED
    scene.ask("inner")
    assert scene.door.refusal("10.0.0.7", "") is None
    assert scene.door.refusal("::ffff:10.0.0.7", "") is None
    assert scene.door.refusal("10.0.0.8", "") == NOT_PROVED
    assert scene.door.refusal("?", "") == NOT_PROVED
    scene.clock.advance(PROOF_SECONDS - 1)
    assert scene.door.refusal("10.0.0.7", "") is None
    scene.ask("inner")
    scene.clock.advance(PROOF_SECONDS - 1)
    assert scene.door.refusal("10.0.0.7", "") is None
    scene.clock.advance(1)
    assert scene.door.refusal("10.0.0.7", "") == NOT_PROVED


def test_a_certificate_of_a_super_user_is_enough() -> None:
    door = Scene().door
    assert door.refusal("10.0.0.7", "inner") is None
    assert door.refusal("10.0.0.7", "bob") == door.refusal("10.0.0.7", "eve") == NOT_PROVED


def test_hosts_are_bounded() -> None:
    scene = Scene()
    for number in range(HOSTS_MAX + 1):
        scene.ask("inner", host=f"10.1.{number // 256}.{number % 256}")
    assert scene.door.refusal("10.1.0.0", "") == NOT_PROVED
    assert scene.door.refusal("10.1.0.1", "") is None


def test_in_mixed_mode_strangers_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    door = Scene(lets_strangers=True).door
    for _ in range(3):
        assert door.refusal("10.0.0.7", "") is None
    assert caplog.text.count("slave without an account host=10.0.0.7") == 1


async def test_knocking() -> None:
    scene = Scene()
    await scene.door.knock("10.0.0.1:10911")
    assert scene.caller.asked == ["10.0.0.1:10911 906"]
    silent = Scene(is_signing=False)
    await silent.door.knock("10.0.0.1:10911")
    assert silent.caller.asked == []


def test_without_accounts_nobody_is_asked() -> None:
    door = ReplicaDoor(None, Caller(), FakeClock(), is_signing=False, lets_strangers=True)
    assert door.refusal("10.0.0.7", "") is None
