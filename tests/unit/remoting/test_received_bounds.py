"""What peers may leave unfinished: bytes of all together, and the time of one frame."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes
from cometmq.remoting.connection import Connection
from cometmq.remoting.remoting_config import ConnectionLimits, RemotingServerConfig

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
LIMITS = ConnectionLimits(received_bytes_max=1000, frame_seconds_max=60, idle_seconds_max=600)
FRAME = encode_bytes(Command(1, body=bytes(400)))
HALF = FRAME[:350]


def beside(peer: Peer, port: int) -> Peer:
    """Another connection of the same server."""
    return type(peer)(peername=("10.0.0.8", port), beside=peer)


def handled(peer: Peer) -> list[Command]:
    commands: list[Command] = []

    def note(connection: Connection, command: Command) -> None:
        commands.append(command)

    peer.dispatcher.add(1, note)
    return commands


async def test_bytes_of_unfinished_frames_are_counted_over_all_connections(
    make_peer: MakePeer,
) -> None:
    peer = make_peer(limits=LIMITS)
    commands = handled(peer)
    other = beside(peer, 1)
    peer.gives(HALF)
    other.gives(HALF)
    assert peer.endpoint.unhandled_bytes == 2 * len(HALF)
    peer.gives(FRAME[350:])
    assert len(commands) == 1
    assert peer.endpoint.unhandled_bytes == len(HALF)
    other.connection.connection_lost(None)
    assert peer.endpoint.unhandled_bytes == 0


async def test_the_frame_that_has_been_unfinished_longest_has_to_go(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = make_peer(limits=LIMITS)
    commands = handled(peer)
    peers = [peer, beside(peer, 1), beside(peer, 2)]
    for age, one in zip((5, 9, 1), peers, strict=True):
        one.connection.data_received(HALF)
        if one.connection.frame_began is not None:
            one.connection.frame_began -= age
    assert [one.transport.is_aborted for one in peers] == [False, True, False]
    assert peer.endpoint.unhandled_bytes == 2 * len(HALF)
    peers[2].gives(FRAME[350:])
    assert len(commands) == 1
    assert "connection cut off peer=10.0.0.8:1" in caplog.text
    assert "serverReceivedBytesMax (1000)" in caplog.text


async def test_what_is_complete_is_handled_and_costs_nobody_the_connection(
    make_peer: MakePeer,
) -> None:
    peer = make_peer(limits=LIMITS)
    commands = handled(peer)
    other = beside(peer, 1)
    other.connection.data_received(HALF)
    for _ in range(5):
        peer.connection.data_received(FRAME)
    assert not other.transport.is_aborted
    peer.endpoint.turn.run()
    assert len(commands) == 5
    assert peer.endpoint.unhandled_bytes == len(HALF)


async def test_a_frame_has_to_be_complete_in_time(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = make_peer(limits=LIMITS)
    handled(peer)
    now = asyncio.get_running_loop().time()
    peer.gives(FRAME + HALF)
    assert peer.connection.frame_began is not None
    peer.connection.frame_began = now - 59
    peer.gives(FRAME[350:360])
    peer.endpoint.sweep()
    assert not peer.connection.is_closed
    peer.connection.frame_began = now - 61
    peer.gives(FRAME[360:370])
    peer.endpoint.sweep()
    assert peer.transport.is_aborted
    assert peer.connection.close_reason == "a frame was not complete after 60 s"
    assert "slow writer cut off peer=10.0.0.7:4711" in caplog.text


async def test_each_frame_has_its_own_time(make_peer: MakePeer) -> None:
    peer = make_peer(limits=LIMITS)
    handled(peer)
    peer.gives(HALF)
    peer.connection.frame_began = asyncio.get_running_loop().time() - 61
    peer.gives(FRAME[350:] + HALF)
    peer.endpoint.sweep()
    assert not peer.connection.is_closed


async def test_time_in_which_nobody_reads_does_not_count(make_peer: MakePeer) -> None:
    peer = make_peer(limits=LIMITS)
    handled(peer)
    peer.gives(HALF)
    peer.connection.pause_writing()
    peer.connection.frame_began = asyncio.get_running_loop().time() - 61
    peer.endpoint.sweep()
    assert not peer.connection.is_closed
    peer.connection.resume_writing()
    peer.endpoint.turn.run()
    peer.endpoint.sweep()
    assert not peer.connection.is_closed


async def test_bodies_kept_by_requests_in_the_background_hold_who_adds_to_them(
    make_peer: MakePeer,
) -> None:
    gate = asyncio.Event()

    async def slow(connection: Connection, command: Command) -> None:
        await gate.wait()

    peer = make_peer(limits=LIMITS)
    peer.dispatcher.add(1, slow)
    for _ in range(3):
        assert peer.transport.is_reading_now
        peer.gives(FRAME)
    assert not peer.transport.is_reading_now
    gate.set()
    await asyncio.wait(peer.endpoint.handlers)
    await asyncio.sleep(0)
    assert peer.transport.is_reading_now
    assert peer.endpoint.handlers_bytes == 0


def test_one_frame_always_fits() -> None:
    limits = RemotingServerConfig(frame_bytes_max=1 << 30, received_bytes_max=32 << 20).limits
    assert limits.received_bytes_max == 2 << 30
