"""The sweep over all connections, and how an endpoint stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.remoting_config import ConnectionLimits

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
LIMITS = ConnectionLimits(idle_seconds_max=120, slow_reader_seconds_max=30, close_seconds_max=5)


async def test_sweep_closes_only_what_is_idle(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    peer = make_peer(limits=LIMITS)
    now = asyncio.get_running_loop().time()
    peer.connection.last_active = now - 119
    peer.endpoint.sweep()
    assert not peer.connection.is_closed
    peer.connection.last_active = now - 121
    peer.endpoint.sweep()
    assert peer.transport.is_closed
    assert peer.connection.close_reason == "idle for 120 s"
    assert "idle connection closed peer=10.0.0.7:4711" in caplog.text


async def test_reading_and_writing_both_count_as_activity(make_peer: MakePeer) -> None:
    peer = make_peer(limits=LIMITS)
    peer.connection.last_active = 0
    peer.connection.data_received(b"\0")
    assert peer.connection.last_active > 0
    peer.connection.last_active = 0
    peer.connection.send(Command(0))
    await asyncio.sleep(0)
    assert peer.connection.last_active > 0


async def test_sweep_cuts_off_a_slow_reader(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = make_peer(limits=LIMITS)
    peer.connection.pause_writing()
    peer.endpoint.sweep()
    assert not peer.connection.is_closed
    peer.connection.congested_at = asyncio.get_running_loop().time() - 31
    peer.endpoint.sweep()
    assert peer.transport.is_aborted
    assert "slow reader cut off peer=10.0.0.7:4711" in caplog.text


async def test_sweep_cuts_off_who_does_not_take_the_last_bytes(make_peer: MakePeer) -> None:
    peer = make_peer(limits=LIMITS)
    peer.connection.close("done")
    peer.endpoint.sweep()
    assert not peer.transport.is_aborted
    peer.connection.closed_at = asyncio.get_running_loop().time() - 6
    peer.endpoint.sweep()
    assert peer.transport.is_aborted


async def test_stop_waits_for_a_handler_and_sends_its_reply(make_peer: MakePeer) -> None:
    gate = asyncio.Event()

    async def slow(connection: Connection, command: Command) -> Command:
        await gate.wait()
        return command.reply(body=b"after all")

    peer = make_peer()
    peer.dispatcher.add(1, slow)
    peer.sends(Command(1))
    stopping = asyncio.create_task(peer.endpoint.stop(5.0))
    await asyncio.sleep(0)
    assert not peer.transport.is_reading_now
    assert not peer.transport.has_sent_eof
    gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert peer.transport.has_sent_eof
    # What was not read is read and dropped, so that the kernel does not reset the connection.
    assert peer.transport.is_reading_now
    assert [reply.body for reply in peer.received] == [b"after all"]
    peer.connection.connection_lost(None)
    await stopping


async def test_stop_cancels_what_outlives_the_grace(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    async def endless(connection: Connection, command: Command) -> None:
        await asyncio.Event().wait()

    peer = make_peer()
    peer.dispatcher.add(1, endless)
    peer.sends(Command(1))
    asyncio.get_running_loop().call_later(0.05, peer.connection.connection_lost, None)
    await peer.endpoint.stop(0.01)
    assert not peer.endpoint.handlers
    assert peer.transport.is_aborted
    assert "handlers cancelled count=1" in caplog.text


async def test_connection_that_arrives_while_stopping_is_closed(make_peer: MakePeer) -> None:
    peer = make_peer()
    peer.endpoint.quiesce()
    late = Connection(peer.endpoint, is_accepted=True)
    late.connection_made(make_peer().transport)
    assert late.is_closed


async def test_handler_outlives_its_connection_in_peace(make_peer: MakePeer) -> None:
    async def slow(connection: Connection, command: Command) -> Command:
        await asyncio.sleep(0)
        return command.reply()

    peer = make_peer(limits=ConnectionLimits(handlers_max=1))
    peer.dispatcher.add(1, slow)
    peer.sends(Command(1), Command(1))
    peer.connection.connection_lost(None)
    await asyncio.wait(peer.endpoint.handlers)
    await asyncio.sleep(0)
    assert peer.received == []
    assert not peer.endpoint.handlers
