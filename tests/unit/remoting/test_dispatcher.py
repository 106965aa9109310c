"""Whatever a handler does becomes the right reply, or none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import BINARY, FLAG_ONEWAY, Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import REMARK_CHARS_MAX, Dispatcher, Handler

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
