"""Whatever a handler does becomes the right reply, or none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.native.send_run import RUN, SendRun
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import BINARY, FLAG_ONEWAY, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import REMARK_CHARS_MAX, Dispatcher, Handler
from cometmq.testing.fake_connection import FakeConnection

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
CODE = 34


def replies(make_peer: MakePeer, handler: Handler, *requests: Command) -> list[Command]:
    async def scenario() -> list[Command]:
        peer = make_peer()
        peer.dispatcher.add(CODE, handler)
        peer.sends(*requests)
        while peer.endpoint.handlers:
            await asyncio.wait(peer.endpoint.handlers)
        await asyncio.sleep(0)
        assert not peer.connection.is_closed
        return peer.received

    return asyncio.run(scenario())


def echo(connection: Connection, command: Command) -> Command:
    return command.reply(body=command.body)


async def echo_later(connection: Connection, command: Command) -> Command:
    await asyncio.sleep(0)
    return command.reply(body=command.body)


def park(connection: Connection, command: Command) -> None:
    return None


def refuse(connection: Connection, command: Command) -> Command:
    raise Refused(ResponseCode.NO_PERMISSION, "not for you", {"k": "v"})


def misread(connection: Connection, command: Command) -> Command:
    raise RemoteProtocolError("field a must be a number")


def fail(connection: Connection, command: Command) -> Command:
    raise KeyError("b")


async def refuse_later(connection: Connection, command: Command) -> Command:
    await asyncio.sleep(0)
    raise Refused(ResponseCode.NO_PERMISSION, "not for you")


async def park_later(connection: Connection, command: Command) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("handler", [echo, echo_later])
def test_returned_command_is_the_reply(make_peer: MakePeer, handler: Handler) -> None:
    (reply,) = replies(make_peer, handler, Command(CODE, opaque=7, body=b"x", encoding=BINARY))

    assert (reply.code, reply.opaque, reply.body) == (0, 7, b"x")
    assert reply.is_response
    assert reply.encoding == BINARY


@pytest.mark.parametrize("handler", [park, park_later])
def test_none_is_no_reply(make_peer: MakePeer, handler: Handler) -> None:
    assert replies(make_peer, handler, Command(CODE)) == []


@pytest.mark.parametrize("handler", [refuse, refuse_later])
def test_refusal_carries_its_code_and_remark(make_peer: MakePeer, handler: Handler) -> None:
    (reply,) = replies(make_peer, handler, Command(CODE, opaque=3))

    assert (reply.code, reply.remark, reply.opaque) == (16, "not for you", 3)


def test_bad_fields_are_a_system_error_without_traceback(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        (reply,) = replies(make_peer, misread, Command(CODE))

    assert (reply.code, reply.remark) == (1, "field a must be a number")
    assert [record.exc_info for record in caplog.records] == [None]


def test_a_bug_is_a_system_error_and_one_traceback(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    (reply,) = replies(make_peer, fail, Command(CODE))

    assert (reply.code, reply.remark) == (1, "KeyError: 'b'")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "peer=10.0.0.7:4711 code=34" in record.getMessage()


@pytest.mark.parametrize(
    "handler", [echo, echo_later, refuse, refuse_later, misread, fail, park, park_later]
)
def test_oneway_is_never_answered(make_peer: MakePeer, handler: Handler) -> None:
    assert replies(make_peer, handler, Command(CODE, flag=FLAG_ONEWAY)) == []


def test_unknown_code_is_named(make_peer: MakePeer) -> None:
    (reply,) = replies(make_peer, echo, Command(999, opaque=5))

    assert (reply.code, reply.opaque) == (3, 5)
    assert reply.remark == " request type 999 not supported"


def test_unknown_oneway_is_not_answered(make_peer: MakePeer) -> None:
    assert replies(make_peer, echo, Command(999, flag=FLAG_ONEWAY)) == []


def test_remark_of_an_error_is_bounded(make_peer: MakePeer) -> None:
    def quote(connection: Connection, command: Command) -> Command:
        raise RemoteProtocolError("x" * 1_000_000)

    (reply,) = replies(make_peer, quote, Command(CODE))

    assert reply.remark is not None
    assert len(reply.remark) == REMARK_CHARS_MAX


def test_reply_that_fits_no_frame_becomes_an_error_reply(make_peer: MakePeer) -> None:
    def too_big_a_code(connection: Connection, command: Command) -> Command:
        return command.reply(200_050)

    (reply,) = replies(make_peer, too_big_a_code, Command(CODE, encoding=BINARY))

    assert reply.code == ResponseCode.SYSTEM_ERROR


async def test_guards_run_in_order_and_the_first_answer_wins(make_peer: MakePeer) -> None:
    seen: list[str] = []

    def passes(connection: Connection, command: Command) -> None:
        seen.append("passes")

    def stops(connection: Connection, command: Command) -> Command:
        seen.append("stops")
        return command.reply(ResponseCode.SYSTEM_BUSY, "later")

    def handler(connection: Connection, command: Command) -> Command:
        seen.append("handler")
        return command.reply()

    peer = make_peer()
    peer.dispatcher.add(CODE, handler)
    peer.dispatcher.guards += [passes, stops, passes]
    peer.sends(Command(CODE), Command(CODE, flag=FLAG_ONEWAY))
    peer.dispatcher.guards[1:] = []
    peer.sends(Command(CODE))
    received = peer.received

    assert [(reply.code, reply.remark) for reply in received] == [(2, "later"), (0, None)]
    assert seen == ["passes", "stops"] * 2 + ["passes", "handler"]


async def test_a_guard_may_raise_like_a_handler(make_peer: MakePeer) -> None:
    peer = make_peer()
    peer.dispatcher.add(CODE, echo)
    peer.dispatcher.guards.append(refuse)
    peer.sends(Command(CODE))
    (reply,) = peer.received
    assert reply.code == ResponseCode.NO_PERMISSION


def test_two_handlers_for_one_code_are_a_mistake() -> None:
    dispatcher = Dispatcher()
    dispatcher.add(CODE, echo)

    with pytest.raises(AssertionError, match="34"):
        dispatcher.add(CODE, park)


def test_a_code_belongs_to_one_gathered_kind() -> None:
    dispatcher = Dispatcher()
    dispatcher.gather([CODE, 35], lambda: None)

    with pytest.raises(AssertionError, match="34"):
        dispatcher.gather([CODE], lambda: None)


@pytest.mark.parametrize("handler", [refuse, misread])
async def test_a_refusal_is_logged_with_its_peer_unless_it_is_everyday_life(
    make_peer: MakePeer, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    for everyday in (frozenset({CODE}), frozenset[int]()):
        assert caplog.records == []
        peer = make_peer()
        peer.dispatcher.everyday = everyday
        peer.dispatcher.add(CODE, handler)
        peer.sends(Command(CODE))
    (line,) = caplog.messages
    assert line.startswith(f"request refused peer=10.0.0.7:4711 code={CODE} reason=")


def test_a_request_that_nobody_knows_is_logged(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    replies(make_peer, echo, Command(9999))
    assert caplog.messages == ["unknown request peer=10.0.0.7:4711 code=9999"]


def passes(_: bool, connection: Connection, command: Command) -> None:
    return None


class FakeRun:
    """Requests of one message each; their opaque numbers count from 0."""

    code, flag, end = RUN, 0, 0

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def frame(self, at: int) -> bytes:
        return encode_bytes(Command(310, opaque=at))

    def after(self, at: int) -> int:
        return at + 1


class TestGuardsOfRuns:
    """Of eight requests, one guard refuses those with certain numbers, and vouches for some of the others."""

    def handled(
        self, *, refused: set[int], vouched: set[int], others: tuple[bool, ...] = ()
    ) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """What was taken, which requests the guard saw, and from where on it was asked to vouch.

        Args:
            others: further guards; whether each is idle, or sees everything.
        """
        taken: list[tuple[int, int]] = []
        seen: list[int] = []
        asked: list[int] = []

        def guard(connection: Connection, command: Command) -> Command | None:
            seen.append(command.opaque)
            return command.reply(16) if command.opaque in refused else None

        def vouch(connection: Connection, run: SendRun, start: int, stop: int) -> int:
            asked.append(start)
            return next((at for at in range(start, stop) if at not in vouched), stop)

        dispatcher, connection = Dispatcher(), FakeConnection()
        dispatcher.stand(guard, lambda: False, vouch)
        for is_idle in others:
            dispatcher.stand(partial(passes, is_idle), partial(bool, is_idle))
        dispatcher.take_runs(lambda *_: None, lambda _, __, *which: taken.append(which))
        dispatcher.dispatch_cut(cast(Connection, connection), cast(Any, FakeRun(8)))
        assert [reply.opaque for reply in connection.sent] == sorted(refused)
        return taken, seen, asked

    def test_what_is_vouched_for_is_not_decoded(self) -> None:
        found = self.handled(refused=set(), vouched=set(range(8)), others=(True,))
        assert found == ([(0, 8)], [], [0])

    def test_what_is_not_is_looked_at_and_the_rest_may_be_vouched_for(self) -> None:
        found = self.handled(refused=set(), vouched={0, 1, 3, 4, 5, 7})
        assert found == ([(0, 8)], [2, 6], [0, 3, 7])

    def test_after_a_refusal_all_others_are_looked_at(self) -> None:
        found = self.handled(refused={2, 5}, vouched={0, 1, 3, 4, 6, 7})
        assert found == ([(0, 2), (3, 5), (6, 8)], [2, 3, 4, 5, 6, 7], [0])

    def test_another_guard_may_want_to_see_all(self) -> None:
        found = self.handled(refused={7}, vouched=set(range(7)), others=(False, True))
        assert found == ([(0, 7)], list(range(8)), [])

    def test_two_have_to_vouch(self) -> None:
        asked: list[tuple[str, int, int]] = []

        def vouch_for(name: str, most: int) -> Any:
            def vouch(connection: Connection, run: SendRun, start: int, stop: int) -> int:
                asked.append((name, start, stop))
                return min(stop, start + most)

            return vouch

        def see_as(name: str) -> Any:
            return lambda _, command: seen.append((name, command.opaque))

        taken: list[tuple[int, int]] = []
        seen: list[tuple[str, int]] = []
        dispatcher = Dispatcher()
        for name, most in (("one", 6), ("other", 4)):
            dispatcher.stand(see_as(name), lambda: False, vouch_for(name, most))
        dispatcher.take_runs(lambda *_: None, lambda _, __, *which: taken.append(which))
        dispatcher.dispatch_run(cast(Connection, FakeConnection()), cast(Any, FakeRun(8)))
        assert taken == [(0, 8)]
        assert asked == [("one", 0, 8), ("other", 0, 6), ("one", 5, 8), ("other", 5, 8)]
        assert seen == [("one", 4), ("other", 4)]
