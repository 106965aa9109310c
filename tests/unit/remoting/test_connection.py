"""One connection on a recording transport: batching, holding, calls, closing."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from cometmq.base.errors import (
    CallTimedOut,
    ConnectionLost,
    LocalProtocolError,
    TooManyInFlight,
)
from cometmq.model.address import pack_host
from cometmq.protocol.command import BINARY, FLAG_RESPONSE, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.remoting.connection import BULK_BYTES, PARTS_MAX, Connection
from cometmq.remoting.remoting_config import ConnectionLimits

if TYPE_CHECKING:
    from tests.unit.remoting.conftest import Peer

MakePeer = Callable[..., "Peer"]
ECHO, BIG, SLOW = 1, 2, 3


def echoing(make_peer: MakePeer, **options: Any) -> Peer:
    def echo(connection: Connection, command: Command) -> Command:
        return command.reply(body=command.body)

    def big(connection: Connection, command: Command) -> Command:
        return command.reply(body=bytes(BULK_BYTES))

    peer = make_peer(**options)
    peer.dispatcher.add(ECHO, echo)
    peer.dispatcher.add(BIG, big)
    return peer


async def test_replies_of_one_chunk_leave_in_one_write(make_peer: MakePeer) -> None:
    peer = echoing(make_peer)
    peer.sends(*(Command(ECHO, opaque=n, body=b"%d" % n) for n in range(50)))

    assert len(peer.transport.writes) == 1
    assert [reply.opaque for reply in peer.received] == list(range(50))
    assert [bytes(reply.body) for reply in peer.received] == [b"%d" % n for n in range(50)]


async def test_one_byte_at_a_time_is_as_good_as_a_chunk(make_peer: MakePeer) -> None:
    peer = echoing(make_peer)
    stream = b"".join(
        encode_bytes(Command(ECHO, opaque=n, body=b"abc", encoding=n % 2)) for n in range(4)
    )
    for at in range(len(stream)):
        peer.gives(stream[at : at + 1])

    assert [reply.opaque for reply in peer.received] == [0, 1, 2, 3]


async def test_broken_frame_closes_after_the_good_ones_were_answered(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = echoing(make_peer)
    good = encode_bytes(Command(ECHO, opaque=9))
    peer.gives(good + b"\xff\xff\xff\xff\0\0\0\0" + good)

    assert [reply.opaque for reply in peer.received] == [9]
    assert peer.transport.is_closed
    assert peer.connection.is_closed
    peer.sends(Command(ECHO))
    assert len(peer.received) == 1
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info is None
    assert "peer=10.0.0.7:4711 reason=frame of -1 bytes" in record.getMessage()


async def test_nothing_behind_a_broken_frame_is_handled(make_peer: MakePeer) -> None:
    peer = echoing(make_peer)
    peer.connection.data_received(b"\xff\xff\xff\xff\0\0\0\0")
    peer.sends(Command(ECHO))
    assert peer.received == []
    assert peer.connection.is_closed


async def test_reason_that_quotes_the_peer_is_bounded(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = make_peer()
    header = b'{"code":1,"extFields":"' + b"x" * 100_000 + b'"}'
    frame = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    peer.gives(frame)
    assert peer.connection.is_closed
    assert len(caplog.records[0].getMessage()) < 500


async def test_sends_of_one_turn_leave_together(make_peer: MakePeer) -> None:
    peer = make_peer()
    for n in range(5):
        peer.connection.send(Command(0, flag=FLAG_RESPONSE, opaque=n))
    assert peer.transport.writes == []
    await asyncio.sleep(0)
    assert len(peer.transport.writes) == 1
    assert [reply.opaque for reply in peer.received] == [0, 1, 2, 3, 4]


async def test_many_small_sends_do_not_pile_up_unseen(make_peer: MakePeer) -> None:
    peer = make_peer()
    for _ in range(PARTS_MAX):
        peer.connection.send(Command(0, flag=FLAG_RESPONSE, body=b"x"))
    assert len(peer.transport.writes) == 2


async def test_body_in_parts_is_sent_as_one(make_peer: MakePeer) -> None:
    peer = make_peer()
    peer.connection.send(Command(0, body_parts=[b"ab", memoryview(b"cd")]))
    assert peer.received[0].body == b"abcd"


async def test_unread_replies_hold_the_rest_of_the_chunk(make_peer: MakePeer) -> None:
    peer = echoing(make_peer)
    write = peer.transport.write

    def write_and_fill(data: bytes) -> None:
        write(data)
        peer.connection.pause_writing()

    peer.transport.write = write_and_fill  # type: ignore[method-assign, assignment]
    peer.sends(*(Command(BIG, opaque=n) for n in range(3)), Command(ECHO, opaque=3))

    assert [reply.opaque for reply in peer.received] == [0]
    assert not peer.transport.is_reading_now
    assert peer.connection.is_congested
    # What a transport had in hand when it was paused comes later, in order.
    peer.sends(Command(ECHO, opaque=4))
    peer.transport.write = write  # type: ignore[method-assign]
    peer.connection.resume_writing()
    peer.endpoint.turn.run()
    assert [reply.opaque for reply in peer.received] == [0, 1, 2, 3, 4]
    assert peer.transport.is_reading_now
    assert not peer.connection.is_congested


async def test_connection_we_opened_is_read_while_its_writes_wait(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    peer.connection.pause_writing()
    assert peer.transport.is_reading_now


async def test_too_many_background_requests_hold_reading_until_one_ends(
    make_peer: MakePeer,
) -> None:
    gates = [asyncio.Event() for _ in range(5)]
    started: list[int] = []

    async def slow(connection: Connection, command: Command) -> Command:
        started.append(command.opaque)
        await gates[command.opaque].wait()
        return command.reply()

    peer = make_peer(limits=ConnectionLimits(handlers_max=2))
    peer.dispatcher.add(SLOW, slow)
    peer.sends(*(Command(SLOW, opaque=n) for n in range(5)))
    await asyncio.sleep(0)
    assert started == [0, 1]
    assert not peer.transport.is_reading_now
    gates[1].set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert started == [0, 1, 2]
    for gate in gates:
        gate.set()
    while peer.endpoint.handlers:
        await asyncio.wait(peer.endpoint.handlers)
    await asyncio.sleep(0)
    assert sorted(reply.opaque for reply in peer.received) == [0, 1, 2, 3, 4]
    assert peer.transport.is_reading_now
    assert peer.connection.handlers_running == 0


async def test_peer_that_leaves_too_much_unread_is_cut_off(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = echoing(make_peer, limits=ConnectionLimits(outgoing_bytes_max=1000))
    peer.connection.pause_writing()
    peer.transport.unsent_bytes = 1001
    peer.connection.send(Command(0, body=bytes(BULK_BYTES)))
    assert peer.transport.is_aborted
    assert peer.connection.is_closed
    assert "slow reader cut off peer=10.0.0.7:4711 unsent_bytes=1001" in caplog.text


async def test_close_sends_what_is_queued_and_drops_what_comes_later(make_peer: MakePeer) -> None:
    peer = make_peer()
    peer.connection.send(Command(0, opaque=1))
    peer.connection.close("enough")
    peer.connection.send(Command(0, opaque=2))
    peer.connection.close("again")
    await asyncio.sleep(0)
    assert [command.opaque for command in peer.received] == [1]
    assert peer.connection.close_reason == "enough"


async def test_handler_may_close_its_own_connection(make_peer: MakePeer) -> None:
    def leave(connection: Connection, command: Command) -> Command:
        connection.close("as told")
        return command.reply()

    peer = echoing(make_peer)
    peer.dispatcher.add(77, leave)
    peer.sends(Command(ECHO, opaque=1), Command(77, opaque=2), Command(ECHO, opaque=3))
    assert [reply.opaque for reply in peer.received] == [1]


async def test_close_hook_is_called_once_and_may_fail(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = make_peer()
    assert list(peer.endpoint.connections) == [peer.connection]
    peer.connection.close("done")
    assert peer.closed == []
    peer.connection.connection_lost(None)
    assert peer.closed == [peer.connection]
    assert not peer.endpoint.connections

    def fail(connection: Connection) -> None:
        raise KeyError

    peer.endpoint._on_close = fail
    peer.endpoint.lost(peer.connection)
    assert "close hook failed" in caplog.text


async def test_peer_that_is_gone_before_it_has_an_address(make_peer: MakePeer) -> None:
    peer = make_peer(peername=None)
    assert peer.transport.is_aborted
    peer.connection.connection_lost(None)
    assert peer.closed == []


async def test_peer_is_known_as_text_and_as_stored(make_peer: MakePeer) -> None:
    plain = make_peer().connection
    assert (plain.peer, plain.peer_host) == ("10.0.0.7:4711", pack_host("10.0.0.7", 4711))
    six = make_peer(peername=("fe80::1%eth0", 80, 0, 2)).connection
    assert (six.peer, six.peer_host) == ("[fe80::1%eth0]:80", pack_host("fe80::1", 80))


async def test_call_returns_its_reply_and_unknown_replies_are_dropped(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    calls = [asyncio.create_task(peer.connection.call(Command(ECHO), 5.0)) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    opaques = [request.opaque for request in peer.received]
    assert len(set(opaques)) == 3
    peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=4242))
    for opaque in reversed(opaques):
        peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=opaque, body=b"%d" % opaque))
    replies = await asyncio.gather(*calls)
    assert [reply.opaque for reply in replies] == opaques
    assert peer.connection.in_flight == 0


async def test_call_fails_at_its_deadline_and_its_late_reply_is_dropped(
    make_peer: MakePeer,
) -> None:
    peer = make_peer(is_accepted=False)
    call = asyncio.create_task(peer.connection.call(Command(ECHO), 0.01))
    await asyncio.sleep(0)
    peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=4242))
    with pytest.raises(CallTimedOut, match=r"10\.0\.0\.7:4711 did not answer request 1") as info:
        await call
    assert info.value.sent
    peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=peer.received[0].opaque))
    assert not peer.connection.is_closed


async def test_loss_ends_calls_under_way_and_refuses_new_ones(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    call = asyncio.create_task(peer.connection.call(Command(ECHO), 5.0))
    await asyncio.sleep(0)
    peer.connection.connection_lost(ConnectionResetError("reset"))
    with pytest.raises(ConnectionLost, match="ConnectionResetError: reset"):
        await call
    with pytest.raises(ConnectionLost):
        await peer.connection.call(Command(ECHO), 5.0)


async def test_a_peer_that_has_gone_is_no_obstacle_to_a_stop(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio's own loop raises where uvloop does not."""
    peer = make_peer()

    def write_eof() -> None:
        raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    monkeypatch.setattr(peer.transport, "write_eof", write_eof)
    peer.connection.close_half("this side is stopping")
    assert peer.transport.is_closed


async def test_cancelled_and_unsendable_calls_leave_nothing_behind(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False, limits=ConnectionLimits(calls_max=1))
    call = asyncio.create_task(peer.connection.call(Command(ECHO), 5.0))
    await asyncio.sleep(0)
    with pytest.raises(TooManyInFlight):
        await peer.connection.call(Command(ECHO), 5.0)
    call.cancel()
    await asyncio.wait([call])
    assert peer.connection.in_flight == 0
    with pytest.raises(LocalProtocolError):
        await peer.connection.call(Command(200_050, encoding=BINARY), 5.0)
    assert peer.connection.in_flight == 0


@pytest.mark.parametrize("body", [b"body", bytes(BULK_BYTES)])
async def test_a_call_that_was_encoded_elsewhere(make_peer: MakePeer, body: bytes) -> None:
    peer = make_peer(is_accepted=False, limits=ConnectionLimits(calls_max=2))
    replies = {}
    for _ in range(2):
        opaque, reply = peer.connection.expect_reply(ECHO, 5.0)
        frame = encode_bytes(Command(ECHO, opaque=opaque, body=body))
        peer.connection.send_encoded(frame[: -len(body)], body)
        replies[opaque] = reply
    await asyncio.sleep(0)
    with pytest.raises(TooManyInFlight):
        peer.connection.expect_reply(ECHO, 5.0)
    assert [(request.opaque, request.body) for request in peer.received] == [
        (opaque, body) for opaque in replies
    ]
    kept, forgotten = replies
    peer.connection.forget(forgotten)
    assert peer.connection.in_flight == 1
    peer.sends(*(Command(0, flag=FLAG_RESPONSE, opaque=opaque) for opaque in replies))
    answer = await replies[kept]
    assert isinstance(answer, Command)
    assert answer.opaque == kept
    assert not replies[forgotten].done()


async def test_a_call_that_was_encoded_elsewhere_ends_as_others_do(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    with pytest.raises(CallTimedOut):
        await peer.connection.expect_reply(ECHO, 0.01)[1]
    lost = make_peer(is_accepted=False)
    _, reply = lost.connection.expect_reply(ECHO, 5.0)
    lost.connection.close("done")
    with pytest.raises(ConnectionLost):
        await reply
    with pytest.raises(ConnectionLost):
        lost.connection.expect_reply(ECHO, 5.0)
    lost.connection.send_encoded(b"head", b"body")
    assert lost.transport.writes == []


async def test_call_waits_while_the_peer_does_not_read(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False, limits=ConnectionLimits(calls_max=2))
    peer.connection.pause_writing()
    with pytest.raises(CallTimedOut) as info:
        await peer.connection.call(Command(ECHO), 0.01)
    assert not info.value.sent
    calls = [asyncio.create_task(peer.connection.call(Command(ECHO), 5.0)) for _ in range(3)]
    await asyncio.sleep(0)
    assert peer.transport.writes == []
    with pytest.raises(TooManyInFlight):
        await calls[2]
    peer.connection.resume_writing()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(peer.received) == 2
    for request in peer.received:
        peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=request.opaque))
    await asyncio.gather(*calls[:2])


async def test_loss_wakes_calls_that_wait_for_the_peer_to_read(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    peer.connection.pause_writing()
    call = asyncio.create_task(peer.connection.call(Command(ECHO), 5.0))
    await asyncio.sleep(0)
    peer.connection.abort("cut")
    with pytest.raises(ConnectionLost, match="cut"):
        await call


async def test_oneway_is_flagged_and_takes_no_calls_number(make_peer: MakePeer) -> None:
    peer = make_peer(is_accepted=False)
    peer.connection.oneway(Command(ECHO))
    call = asyncio.create_task(peer.connection.call(Command(ECHO), 5.0))
    for _ in range(3):
        await asyncio.sleep(0)
    oneway, request = peer.received
    assert oneway.is_oneway
    assert oneway.opaque != request.opaque
    peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=oneway.opaque))
    await asyncio.sleep(0)
    assert not call.done()
    peer.sends(Command(0, flag=FLAG_RESPONSE, opaque=request.opaque))
    await call


@pytest.mark.parametrize("end", ["eof", "lost"])
async def test_what_comes_together_with_the_end_is_handled(make_peer: MakePeer, end: str) -> None:
    peer = make_peer()
    handled: list[int] = []

    def handle(connection: Connection, command: Command) -> Command:
        handled.append(command.opaque)
        return command.reply()

    peer.dispatcher.add(ECHO, handle)
    peer.connection.data_received(encode_bytes(Command(ECHO, opaque=3)))
    assert not handled
    if end == "eof":
        peer.connection.eof_received()
    else:
        peer.connection.connection_lost(None)
    assert handled == [3]
    assert len(peer.received) == (1 if end == "eof" else 0)
    await asyncio.sleep(0)
    assert handled == [3]


async def test_what_arrives_in_one_turn_is_handled_after_all_of_it_was_read(
    make_peer: MakePeer,
) -> None:
    peer = echoing(make_peer)
    for opaque in (1, 2):
        peer.connection.data_received(encode_bytes(Command(ECHO, opaque=opaque)))
    assert peer.received == []
    await asyncio.sleep(0)
    assert [reply.opaque for reply in peer.received] == [1, 2]
    assert len(peer.transport.writes) == 1


async def test_peer_that_leaves_inside_a_frame_is_described(make_peer: MakePeer) -> None:
    peer = make_peer()
    peer.connection.data_received(encode_bytes(Command(ECHO))[:-3])
    peer.connection.eof_received()
    assert "bytes into a frame" in peer.connection.close_reason


async def test_repr_tells_the_state(make_peer: MakePeer) -> None:
    peer = make_peer()
    peer.connection.pause_writing()
    peer.transport.unsent_bytes = 12
    text = repr(peer.connection)
    assert text.startswith("<Connection from 10.0.0.7:4711 open held=writes in_flight=0")
    assert "unsent=12B" in text
    peer.connection.abort("why")
    assert "closed (why)" in repr(peer.connection)
