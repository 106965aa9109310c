"""How turns of the loop are shared between peers that send much and peers that send little."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting import turn as turn_module
from cometmq.remoting.connection import Connection
from cometmq.remoting.turn import LEFT_COUNT_MAX, STEP_COUNT

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
FLOOD = LEFT_COUNT_MAX + 3 * STEP_COUNT + 1


class Turns:
    """A flood and a small request at one server, where a look at the clock takes longer than a turn may."""

    def __init__(self, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
        ticks = count()
        monkeypatch.setattr(turn_module, "monotonic", lambda: next(ticks))
        monkeypatch.setattr(turn_module, "TURN_SECONDS", 0.5)
        self.handled: list[tuple[str, int]] = []
        self.flood = make_peer()
        self.flood.dispatcher.add(1, self._note)
        self.small = make_peer(peername=("10.0.0.8", 1), beside=self.flood)

    def _note(self, connection: Connection, command: Command) -> None:
        self.handled.append((connection.peer, command.opaque))

    def arrive(self, peer: Peer, *opaques: int) -> None:
        peer.queues(*(Command(1, flag=FLAG_ONEWAY, opaque=one) for one in opaques))

    def turn(self) -> None:
        self.flood.endpoint.turn.run()

    def count(self, peer: Peer) -> int:
        return sum(who == peer.connection.peer for who, _ in self.handled)


@pytest.fixture
def in_turns(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Turns], None]], None]:
    def run(scenario: Callable[[Turns], None]) -> None:
        async def main() -> None:
            scenario(Turns(make_peer, monkeypatch))

        coroutine: Coroutine[Any, Any, None] = main()
        asyncio.run(coroutine)

    return run


InTurns = Callable[[Callable[[Turns], None]], None]


def test_a_small_request_is_handled_in_the_turn_of_a_flood(in_turns: InTurns) -> None:
    def scenario(turns: Turns) -> None:
        turns.arrive(turns.flood, *range(FLOOD))
        turns.arrive(turns.small, 1)
        turns.turn()
        assert turns.count(turns.flood) == STEP_COUNT
        assert turns.count(turns.small) == 1

    in_turns(scenario)


def test_the_rest_follows_in_order_and_once(in_turns: InTurns) -> None:
    def scenario(turns: Turns) -> None:
        turns.arrive(turns.flood, *range(FLOOD))
        turns.turn()
        turns.arrive(turns.flood, FLOOD)
        for _ in range(FLOOD // STEP_COUNT + 2):
            turns.turn()
        assert [opaque for _, opaque in turns.handled] == list(range(FLOOD + 1))
        assert turns.flood.endpoint.unhandled_bytes == 0

    in_turns(scenario)


def test_who_has_too_much_left_is_not_read(in_turns: InTurns) -> None:
    def scenario(turns: Turns) -> None:
        turns.arrive(turns.flood, *range(FLOOD))
        is_read = []
        for _ in range(FLOOD // STEP_COUNT + 2):
            turns.turn()
            is_read.append(turns.flood.transport.is_reading_now)
        assert is_read[:2] == [False, False]
        assert is_read[-1]
        assert len(turns.handled) == FLOOD

    in_turns(scenario)


def test_what_waited_while_reading_was_held_takes_turns_as_well(in_turns: InTurns) -> None:
    def scenario(turns: Turns) -> None:
        turns.flood.connection.pause_writing()
        turns.arrive(turns.flood, *range(FLOOD))
        turns.turn()
        turns.flood.connection.resume_writing()
        assert turns.count(turns.flood) == 0
        turns.arrive(turns.small, 1)
        turns.turn()
        assert turns.count(turns.flood) == STEP_COUNT
        assert turns.count(turns.small) == 1

    in_turns(scenario)


def test_who_leaves_has_all_of_it_handled(in_turns: InTurns) -> None:
    def scenario(turns: Turns) -> None:
        turns.arrive(turns.flood, *range(FLOOD))
        turns.turn()
        turns.flood.connection.connection_lost(None)
        assert len(turns.handled) == FLOOD
        turns.turn()
        assert len(turns.handled) == FLOOD

    in_turns(scenario)


async def test_in_time_everything_is_handled_in_one_turn(make_peer: MakePeer) -> None:
    peer = make_peer()
    handled: list[int] = []

    def note(connection: Connection, command: Command) -> None:
        handled.append(command.opaque)

    peer.dispatcher.add(1, note)
    peer.sends(*(Command(1, opaque=number) for number in range(3 * STEP_COUNT)))
    assert len(handled) == 3 * STEP_COUNT
