"""Large bodies on a connection of ours: received into their own memory or a lent one, whatever comes in between."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from cometmq.base.errors import ConnectionLost
from cometmq.protocol.command import FLAG_RESPONSE, Body, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.remoting.large_body import LARGE_BYTES, LENT_STEP_BYTES, LargeBody, LentMemory

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
BODY = bytes(range(256)) * (8 * LARGE_BYTES // 256)
PIECE_BYTES = LARGE_BYTES // 2


def reply_to(request: Command, body: bytes = BODY) -> bytes:
    return encode_bytes(Command(0, flag=FLAG_RESPONSE, opaque=request.opaque, body=body))


def gives(peer: Peer, stream: bytes) -> list[asyncio.BaseProtocol]:
    """Hand over a stream piece by piece, as the transport's protocol of the moment takes it; who has taken pieces."""
    takers: list[asyncio.BaseProtocol] = []
    while stream:
        protocol = peer.transport.protocol
        takers.append(protocol)
        if isinstance(protocol, asyncio.BufferedProtocol):
            room = memoryview(protocol.get_buffer(-1))
            count = min(len(room), len(stream), PIECE_BYTES)
            room[:count] = stream[:count]
            protocol.buffer_updated(count)
        else:
            count = min(len(stream), PIECE_BYTES)
            peer.connection.data_received(stream[:count])
        stream = stream[count:]
    peer.endpoint.turn.run()
    return takers


async def test_a_large_reply_is_received_in_place_and_small_ones_around_it_are_not_lost(
    make_peer: MakePeer,
) -> None:
    peer = make_peer(is_accepted=False)
    commands = [Command(1) for _ in range(4)]
    replies = [peer.connection.start_call(command) for command in commands]
    small = b"small" * 10
    takers = gives(
        peer,
        reply_to(commands[0], small)
        + reply_to(commands[1])
        + reply_to(commands[2], small)
        + reply_to(commands[3]),
    )
    bodies = [(await reply).body for reply in replies]
    assert bodies == [small, BODY, small, BODY]
    assert {type(body) for body in bodies} == {bytes}
    assert len({taker for taker in takers if isinstance(taker, LargeBody)}) == 2
    assert peer.transport.protocol is peer.connection


async def test_a_body_that_was_handed_out_is_not_kept(make_peer: MakePeer) -> None:
    """The transport of uvloop keeps the methods of its last buffered protocol, and with them the protocol."""
    peer = make_peer(is_accepted=False)
    command = Command(1)
    reply = peer.connection.start_call(command)
    takers = gives(peer, reply_to(command))
    body = (await reply).body
    assert body == BODY
    [taker] = {taker for taker in takers if isinstance(taker, LargeBody)}
    held = gc.get_referents(taker)
    assert not any(isinstance(one, memoryview | Command) for one in held)


async def test_what_a_stranger_sends_takes_no_memory_in_advance(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=True)
    got: list[bytes] = []
    peer.dispatcher.add(1, lambda _, command: got.append(bytes(command.body)))
    takers = gives(peer, encode_bytes(Command(1, body=BODY)))
    assert set(takers) == {peer.connection}
    assert got == [BODY]


async def test_a_request_of_the_servers_may_be_large_too(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    got: list[Body] = []
    peer.dispatcher.add(1, lambda _, command: got.append(command.body))
    gives(peer, encode_bytes(Command(1, body=BODY)))
    assert got == [BODY]


async def test_lent_memory_is_used_again_once_it_is_given_back(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    memory = LentMemory()

    async def body(content: bytes) -> memoryview:
        command = Command(1)
        reply = peer.connection.start_call(command, memory=memory)
        gives(peer, reply_to(command, content))
        return memoryview((await reply).body)

    first = await body(BODY)
    second = await body(BODY[::-1])
    assert second.obj is not first.obj
    assert (bytes(first), bytes(second)) == (BODY, BODY[::-1])
    memory.give_back(second)
    assert (await body(BODY)).obj is not first.obj
    memory.give_back(first)
    third = await body(BODY[: 6 * LARGE_BYTES])
    assert third.obj is first.obj
    assert third == BODY[: 6 * LARGE_BYTES]
    memory.give_back(third)
    small = await body(b"small")
    assert small.obj == b"small"


async def test_memory_of_a_call_that_was_given_up_is_not_written_any_more(
    make_peer: MakePeer,
) -> None:
    peer = make_peer(is_accepted=False)
    memory = LentMemory()
    command, other = Command(1), Command(1)
    given_up = peer.connection.start_call(command, memory=memory)
    stream = reply_to(command)
    gives(peer, stream[: len(stream) // 2])
    given_up.cancel()
    peer.connection._pending.forget(command.opaque)
    memory.give_back(memoryview(memory._memory))
    room = memory.take(len(BODY))
    assert room is not None
    room[:] = bytes(len(BODY))
    reply = peer.connection.start_call(other)
    gives(peer, stream[len(stream) // 2 :] + reply_to(other, b"next"))
    assert room == bytes(len(BODY))
    assert (await reply).body == b"next"


async def test_a_peer_that_leaves_within_a_large_body_ends_the_call(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    command = Command(1)
    reply = peer.connection.start_call(command)
    stream = reply_to(command)
    gives(peer, stream[: len(stream) // 2])
    protocol = peer.transport.protocol
    assert isinstance(protocol, LargeBody)
    protocol.eof_received()
    protocol.connection_lost(None)
    with pytest.raises(ConnectionLost, match="closed by the peer"):
        await reply
    assert peer.closed == [peer.connection]


async def test_a_header_that_cannot_be_read_closes_the_connection(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    reply = peer.connection.start_call(Command(1))
    frame = bytearray(reply_to(Command(1)))
    frame[8] = ord("x")
    gives(peer, bytes(frame[: 2 * PIECE_BYTES]))
    with pytest.raises(ConnectionLost, match="header is not JSON"):
        await reply


async def test_a_slow_large_reply_keeps_its_connection_from_being_idle(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    command = Command(1)
    peer.connection.start_call(command)
    stream = reply_to(command)
    gives(peer, stream[: 2 * PIECE_BYTES])
    peer.connection.last_active = 0
    gives(peer, stream[2 * PIECE_BYTES : 3 * PIECE_BYTES])
    assert peer.connection.last_active > 0


def test_lent_memory_grows_by_steps() -> None:
    memory = LentMemory()
    first = memory.take(LENT_STEP_BYTES - 5)
    assert first is not None
    assert memory.take(1) is None
    memory.give_back(first)
    second = memory.take(LENT_STEP_BYTES)
    assert second is not None
    assert second.obj is first.obj
    memory.give_back(second)
    third = memory.take(LENT_STEP_BYTES + 1)
    assert third is not None
    assert (len(third), len(memoryview(third.obj))) == (LENT_STEP_BYTES + 1, 2 * LENT_STEP_BYTES)
