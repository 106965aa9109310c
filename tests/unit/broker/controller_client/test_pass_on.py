"""Requests for the master, at a broker that is not the master."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from cometmq.base.errors import CallTimedOut, ConnectFailed
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.controller_client import pass_on
from cometmq.broker.controller_client.pass_on import PassOn
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.request_signature import PASSED_ON_FOR, PASSED_ON_MARK
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

NOBODY = cast(Connection, None)
MASTER = "10.0.0.1:10911"
BUSY, GONE = ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE


class Client:
    """The way to the master: answers with what it is told, one after the other."""

    def __init__(self, clock: FakeClock) -> None:
        self.outcomes: list[int | Exception] = []
        self.sent: list[Command] = []
        self.as_is: list[bool] = []
        self._clock = clock

    async def call(self, address: str, command: Command, timeout: float, *, as_is: bool) -> Command:
        assert address == MASTER
        self.sent.append(command)
        self.as_is.append(as_is)
        self._clock.advance(0.5)
        outcome = self.outcomes.pop(0) if self.outcomes else 0
        if isinstance(outcome, Exception):
            raise outcome
        return command.reply(outcome, "its remark", ext={"queueOffset": "7"})

    async def oneway(self, address: str, command: Command, *, as_is: bool) -> None:
        self.sent.append(command)


class Place:
    """A broker under a controller, as far as passing on looks at it."""

    is_settled = True

    def __init__(self, account: str = "", role: str = "SLAVE") -> None:
        self.clock = FakeClock()
        self.live = LiveConfig(BrokerConfig(), clock=self.clock, files=FaultyFiles(self.clock))
        self.live.take_role(role, 2)
        self.client = Client(self.clock)
        self.master: str | None = MASTER
        self.pass_on = PassOn(
            self.live,
            self,
            cast(RemotingClient, self.client),
            self.clock,
            lambda: self.master,
            lambda connection: account,
        )

    def guard(self, command: Command) -> Any:
        return self.pass_on.guard(NOBODY, command)

    def ask(self, command: Command) -> Command | None:
        async def wait(answer: Awaitable[Command | None]) -> Command | None:
            return await answer

        answer = self.guard(command)
        return answer if isinstance(answer, Command) else asyncio.run(wait(answer))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_on, "PAUSE_SECONDS", 0)


def send(body: bytes = b"x") -> Command:
    return Command(RequestCode.SEND_MESSAGE_V2, {"b": "T"}, body, opaque=5)


def test_a_master_answers_by_itself() -> None:
    place = Place(role="SYNC_MASTER")
    assert place.guard(send()) is None
    place.live.take_role("SLAVE", 2)
    assert place.ask(send()) is not None


def test_a_slave_gives_the_masters_answer() -> None:
    place = Place()
    reply = place.ask(send(b"body"))
    assert reply is not None
    assert (reply.code, reply.opaque, reply.remark) == (0, 5, "its remark")
    assert reply.ext == {"queueOffset": "7"}
    (passed,) = place.client.sent
    assert (passed.code, passed.body, passed.ext) == (310, b"body", {"b": "T", PASSED_ON_MARK: "1"})


def test_only_what_needs_the_master_is_passed_on() -> None:
    place = Place()
    for code in (RequestCode.PULL_MESSAGE, RequestCode.HEART_BEAT, RequestCode.HAND_OVER):
        assert place.guard(Command(code)) is None


def test_a_request_is_passed_on_once() -> None:
    place = Place()
    command = send()
    command.ext = {PASSED_ON_MARK: "1"}
    reply = place.ask(command)
    assert reply is not None
    assert (reply.code, place.client.sent) == (GONE, [])


def test_one_way_requests_too() -> None:
    place = Place()
    command = send()
    command.flag = FLAG_ONEWAY
    assert place.ask(command) is None
    assert len(place.client.sent) == 1


def test_a_master_that_is_not_ready_is_asked_again() -> None:
    place = Place()
    place.client.outcomes = [ConnectFailed("nobody there"), GONE, 0]
    reply = place.ask(send())
    assert reply is not None
    assert (reply.code, len(place.client.sent)) == (0, 3)


def test_it_is_not_asked_for_ever() -> None:
    place = Place()
    place.client.outcomes = [GONE] * 99
    reply = place.ask(send())
    assert reply is not None
    assert (reply.code, len(place.client.sent)) == (GONE, 5)


def test_an_answer_that_is_lost_is_not_asked_for_twice() -> None:
    place = Place()
    place.client.outcomes = [CallTimedOut("too late", sent=True)]
    reply = place.ask(send())
    assert reply is not None
    assert (reply.code, len(place.client.sent)) == (ResponseCode.SYSTEM_ERROR, 1)
    assert "not known" in (reply.remark or "")


def test_what_waits_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_on, "UNDER_WAY_MAX", 0)
    reply = Place().ask(send())
    assert reply is not None
    assert reply.code == BUSY
    monkeypatch.undo()
    monkeypatch.setattr(pass_on, "UNDER_WAY_BYTES_MAX", 3)
    reply = Place().ask(send(b"four"))
    assert reply is not None
    assert reply.code == BUSY


def test_a_hold_ends_with_its_time_or_before() -> None:
    place = Place(role="SYNC_MASTER")
    assert place.guard(send()) is None
    place.pass_on.hold(2.0)
    waiting = place.guard(send())
    assert waiting is not None
    waiting.close()
    place.clock.advance(2.1)
    assert place.guard(send()) is None
    place.pass_on.hold(2.0)
    place.pass_on.release()
    assert place.guard(send()) is None


@pytest.mark.parametrize(("account", "is_named"), [("bob", True), ("", False)])
def test_the_broker_vouches_for_who_is_known_to_it_and_for_nobody_else(
    account: str, is_named: bool
) -> None:
    """What a client says about that itself does not count."""
    place = Place(account)
    command = Command(310, {"b": "T", "AccessKey": "root", PASSED_ON_FOR: "root"})
    assert place.ask(command) is not None
    [sent] = place.client.sent
    assert (sent.ext or {}).get(PASSED_ON_FOR) == (account if is_named else None)
    assert (sent.ext or {})["AccessKey"] == "root"
    assert place.client.as_is == [not is_named]
