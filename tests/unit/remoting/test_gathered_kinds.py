"""Kinds of requests that a turn gathers and finishes together: the order of their effects and of their replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
SEND, SEND_V2, ACK, ASK = 1, 2, 3, 4
BROKEN_FRAME = b"\xff\xff\xff\xff\0\0\0\0"


class Kind:
    """Gathers requests, and notes what it does under its name."""

    def __init__(self, name: str, steps: list[str]) -> None:
        self._name = name
        self._steps = steps
        self._waiting: list[tuple[Connection, Command]] = []

    def prepare(self, connection: Connection, command: Command) -> None:
        self._steps.append(f"prepare {self._name} {command.opaque}")
        self._waiting.append((connection, command))

    def finish(self) -> None:
        waiting, self._waiting = self._waiting, []
        opaques = " ".join(str(command.opaque) for _, command in waiting)
        self._steps.append(f"finish {self._name} {opaques}")
        for connection, command in waiting:
            if not command.flag & FLAG_ONEWAY:
                connection.add_frame(encode_bytes(command.reply()))


class Server:
    """Two gathered kinds, and a request that is answered at once."""

    def __init__(self, make_peer: MakePeer) -> None:
        self.steps: list[str] = []
        self._make_peer = make_peer
        self.peer = make_peer()
        dispatcher: Dispatcher = self.peer.dispatcher
        self.sends, self.acks = Kind("send", self.steps), Kind("ack", self.steps)
        dispatcher.add(SEND, self.sends.prepare)
        dispatcher.add(SEND_V2, self.sends.prepare)
        dispatcher.add(ACK, self.acks.prepare)
        dispatcher.add(ASK, self._ask)
        dispatcher.gather([SEND, SEND_V2], self.sends.finish)
        dispatcher.gather([ACK], self.acks.finish)

    def _ask(self, connection: Connection, command: Command) -> Command:
        self.steps.append(f"ask {command.opaque}")
        return command.reply()

    def peers(self, count: int) -> list[Peer]:
        others = [
            self._make_peer(peername=("10.0.0.8", port), beside=self.peer)
            for port in range(1, count)
        ]
        return [self.peer, *others]

    def turn(self) -> list[str]:
        """The steps of one turn that change something."""
        self.steps.clear()
        self.peer.endpoint.turn.run()
        return [step for step in self.steps if not step.startswith("prepare")]


def requests(*codes: int, first: int = 0) -> list[Command]:
    return [Command(code, opaque=first + at) for at, code in enumerate(codes)]


def opaques(peer: Peer) -> list[int]:
    return [reply.opaque for reply in peer.received]


async def test_one_kind_is_finished_once_a_turn_over_all_its_codes_and_connections(
    make_peer: MakePeer,
) -> None:
    server = Server(make_peer)
    first, second = server.peers(2)
    first.queues(*requests(SEND, SEND_V2))
    second.queues(*requests(SEND_V2, SEND, first=10))
    assert server.turn() == ["finish send 0 1 10 11"]
    assert (opaques(first), opaques(second)) == ([0, 1], [10, 11])
    assert [len(one.transport.writes) for one in (first, second)] == [1, 1]
    assert server.turn() == [], "nothing is left for the next turn"


async def test_what_is_not_gathered_comes_after_everything_gathered_before_it(
    make_peer: MakePeer,
) -> None:
    server = Server(make_peer)
    first, second, third = server.peers(3)
    first.queues(*requests(SEND))
    second.queues(*requests(ACK, first=10))
    third.queues(*requests(ASK, SEND, ASK, first=20))
    assert server.turn() == [
        "finish send 0",
        "finish ack 10",
        "ask 20",
        "finish send 21",
        "ask 22",
    ]
    assert opaques(third) == [20, 21, 22]


async def test_kinds_of_one_connection_keep_their_order(make_peer: MakePeer) -> None:
    server = Server(make_peer)
    server.peer.queues(*requests(SEND, SEND, ACK, ACK, SEND_V2, ASK, ACK))
    server.peer.endpoint.turn.run()
    assert server.steps == [
        "prepare send 0",
        "prepare send 1",
        "finish send 0 1",
        "prepare ack 2",
        "prepare ack 3",
        "finish ack 2 3",
        "prepare send 4",
        "finish send 4",
        "ask 5",
        "prepare ack 6",
        "finish ack 6",
    ]
    assert opaques(server.peer) == [0, 1, 2, 3, 4, 5, 6]
    assert len(server.peer.transport.writes) == 1


async def test_kinds_of_different_connections_are_gathered_side_by_side(
    make_peer: MakePeer,
) -> None:
    """They are finished in the order of their first requests."""

    server = Server(make_peer)
    peers = server.peers(4)
    for at, (peer, code) in enumerate(zip(peers, (ACK, SEND, ACK, SEND), strict=True)):
        peer.queues(*requests(code, code, first=10 * at))
    assert server.turn() == ["finish ack 0 1 20 21", "finish send 10 11 30 31"]
    assert [opaques(peer) for peer in peers] == [[0, 1], [10, 11], [20, 21], [30, 31]]


async def test_kinds_interleaved_on_several_connections(make_peer: MakePeer) -> None:
    """Nobody's requests overtake each other, and those of others still share the work where they can."""

    server = Server(make_peer)
    first, second, third = server.peers(3)
    first.queues(*requests(SEND))
    second.queues(*requests(SEND, ACK, SEND, first=10))
    third.queues(*requests(ACK, SEND, first=20))
    assert server.turn() == [
        "finish send 0 10",
        "finish ack 11",
        "finish send 12",
        "finish ack 20",
        "finish send 21",
    ]
    assert [opaques(peer) for peer in (first, second, third)] == [[0], [10, 11, 12], [20, 21]]


async def test_a_refused_or_one_way_request_does_not_part_its_kind(make_peer: MakePeer) -> None:
    server = Server(make_peer)

    def refuse_one(connection: Connection, command: Command) -> None:
        if command.opaque == 1:
            raise Refused(ResponseCode.NO_PERMISSION, "not for you")

    server.peer.dispatcher.guards.append(refuse_one)
    sends = requests(SEND, SEND, SEND, SEND)
    sends[2].flag = FLAG_ONEWAY
    server.peer.queues(*sends)
    assert server.turn() == ["finish send 0 2 3"]
    codes = {reply.opaque: reply.code for reply in server.peer.received}
    assert codes == {0: 0, 1: ResponseCode.NO_PERMISSION, 3: 0}


async def test_a_kind_that_fails_does_not_cost_the_other_its_replies(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(make_peer)
    first, second = server.peers(2)

    def fail() -> None:
        raise ZeroDivisionError("a bug")

    first.dispatcher.add(9, server.sends.prepare)
    first.dispatcher.gather([9], fail)
    first.queues(*requests(9, ASK))
    second.queues(*requests(ACK, first=10))
    assert server.turn() == ["ask 1", "finish ack 10"]
    assert (opaques(first), opaques(second)) == ([1], [10])
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "gathered requests not finished" in record.getMessage()


async def test_what_came_before_a_broken_frame_is_finished_and_answered(
    make_peer: MakePeer,
) -> None:
    server = Server(make_peer)
    server.peer.connection.data_received(encode_bytes(Command(SEND, opaque=1)) + BROKEN_FRAME)
    assert server.turn() == ["finish send 1"]
    assert opaques(server.peer) == [1]
    assert server.peer.connection.is_closed


@pytest.mark.parametrize("is_answered", [True, False])
async def test_what_came_with_the_end_of_a_connection_is_finished(
    make_peer: MakePeer, is_answered: bool
) -> None:
    server = Server(make_peer)
    connection = server.peer.connection
    server.peer.queues(*requests(SEND, ACK))
    if is_answered:
        connection.eof_received()
    else:
        connection.connection_lost(None)
    assert [step for step in server.steps if step.startswith("finish")] == [
        "finish send 0",
        "finish ack 1",
    ]
    assert opaques(server.peer) == ([0, 1] if is_answered else [])
    assert server.turn() == [], "nothing is done twice"


async def test_held_requests_are_gathered_with_those_of_others_when_released(
    make_peer: MakePeer,
) -> None:
    server = Server(make_peer)
    first, second = server.peers(2)
    first.connection.pause_writing()
    first.queues(*requests(SEND, SEND))
    assert server.turn() == []
    first.connection.resume_writing()
    second.queues(*requests(SEND, first=10))
    assert server.turn() == ["finish send 0 1 10"]
    assert first.transport.is_reading_now
