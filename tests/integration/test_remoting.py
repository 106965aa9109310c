"""Server and client over the loopback, on both event loops; each test ends without a task or connection left."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.conftest import Run

from cometmq.base.errors import (
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    RemotingError,
    UsageError,
)
from cometmq.model.address import pack_host
from cometmq.protocol.command import BINARY, Command
from cometmq.protocol.frame import FrameDecoder, encode_bytes
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.remoting_config import RemotingServerConfig
from cometmq.remoting.server import RemotingServer

ECHO, LATER, NEVER, BIG = 1, 2, 3, 4
BIG_BYTES = 1 << 20


def processors() -> Dispatcher:
    def echo(connection: Connection, command: Command) -> Command:
        return command.reply(body=command.body)

    async def later(connection: Connection, command: Command) -> Command:
        await asyncio.sleep(float(bytes(command.body)))
        return command.reply(body=command.body)

    def never(connection: Connection, command: Command) -> None:
        return None

    def big(connection: Connection, command: Command) -> Command:
        return command.reply(body=bytes(BIG_BYTES))

    dispatcher = Dispatcher()
    for code, handler in ((ECHO, echo), (LATER, later), (NEVER, never), (BIG, big)):
        dispatcher.add(code, handler)
    return dispatcher


class Running:
    """A started server with a client beside it."""

    def __init__(self, server: RemotingServer, client: RemotingClient, port: int) -> None:
        self.server = server
        self.client = client
        self.port = port
        self.address = f"127.0.0.1:{port}"

    async def call(self, code: int, body: bytes = b"", timeout: float = 5.0) -> Command:
        return await self.client.call(self.address, Command(code, body=body), timeout)

    async def stranger(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A plain socket, for what no client of ours would do."""
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def running(
    config: RemotingServerConfig | None = None, **options: Any
) -> AsyncIterator[Running]:
    server = RemotingServer(processors(), config=config, **options)
    port = await server.start("127.0.0.1", 0)
    client = RemotingClient()
    try:
        yield Running(server, client, port)
    finally:
        await client.close()
        await server.stop()
        assert not server.connections
        assert not client.connections


async def read_reply(reader: asyncio.StreamReader) -> Command:
    decoder = FrameDecoder()
    while True:
        data = await reader.read(1 << 16)
        assert data, "closed without a reply"
        for command in decoder.feed(data):
            return command


async def is_cut_off(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(5):
            return await reader.read() == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_calls_are_answered_out_of_order(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            order: list[bytes] = []

            async def one(code: int, body: bytes) -> None:
                reply = await it.call(code, body)
                assert reply.body == body
                order.append(body)

            await asyncio.gather(one(LATER, b"0.05"), one(LATER, b"0.01"), one(ECHO, b"now"))
            assert order == [b"now", b"0.01", b"0.05"]
            assert len(it.server.connections) == 1

    run(scenario)


def test_many_calls_share_one_connection(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            bodies = [b"%d" % n for n in range(2000)]
            replies = await asyncio.gather(*(it.call(ECHO, body) for body in bodies))
            assert [reply.body for reply in replies] == bodies
            assert len(it.server.connections) == 1

    run(scenario)


def test_large_bodies_pass_both_ways(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            body = bytes(range(256)) * (1 << 14)
            replies = await asyncio.gather(*(it.call(ECHO, body) for _ in range(8)))
            assert all(reply.body == body for reply in replies)

    run(scenario)


def test_call_times_out_while_others_go_on(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            with pytest.raises(CallTimedOut):
                await it.call(NEVER, timeout=0.05)
            assert (await it.call(ECHO, b"x")).body == b"x"

    run(scenario)


def test_a_connection_on_which_nothing_comes_is_given_up(run: Run) -> None:
    """Its other end may be gone without a word: a machine lost its power, a network was cut."""

    async def scenario() -> None:
        async with running() as it:
            silent = await it.client.connection(it.address)
            with pytest.raises(CallTimedOut):
                await it.call(NEVER, timeout=0.05)
            assert silent.is_closed
            assert "nothing has come" in silent.close_reason
            assert (await it.call(ECHO, b"again")).body == b"again"

    run(scenario)


def test_a_connection_on_which_others_are_answered_stays(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            connection = await it.client.connection(it.address)
            never = asyncio.create_task(it.call(NEVER, timeout=0.2))
            while not never.done():
                await it.call(ECHO)
            with pytest.raises(CallTimedOut):
                await never
            assert not connection.is_closed

    run(scenario)


def test_server_calls_its_client_on_the_same_connection(run: Run) -> None:
    async def scenario() -> None:
        heard: list[Command] = []
        told = asyncio.Event()

        def answer(connection: Connection, command: Command) -> Command:
            heard.append(command)
            told.set()
            return command.reply(body=b"client")

        dispatcher = Dispatcher()
        dispatcher.add(40, answer)
        async with running() as it:
            client = RemotingClient(dispatcher)
            await client.call(it.address, Command(ECHO))
            (connection,) = it.server.connections
            assert (await connection.call(Command(40), 5.0)).body == b"client"
            told.clear()
            connection.oneway(Command(40))
            await told.wait()
            assert [command.is_oneway for command in heard] == [False, True]
            assert connection.peer_host == pack_host("127.0.0.1", int(connection.peer[10:]))
            await client.close()

    run(scenario)


def test_oneway_reaches_the_handler(run: Run) -> None:
    async def scenario() -> None:
        heard = asyncio.Event()
        dispatcher = Dispatcher()
        dispatcher.add(9, lambda connection, command: heard.set())
        server = RemotingServer(dispatcher)
        client = RemotingClient()
        port = await server.start("127.0.0.1", 0)
        await client.oneway(f"127.0.0.1:{port}", Command(9))
        await heard.wait()
        await client.close()
        await server.stop()

    run(scenario)


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "negative length": b"\xff\xff\xff\xff\0\0\0\0",
    "huge length": b"\x7f\xff\xff\xff\0\0\0\0",
    "header above frame": b"\0\0\0\x08\0\0\xff\xff\0\0\0\0",
    "unknown encoding": b"\0\0\0\x08\x09\0\0\x04abcd",
    "no JSON": b"\0\0\0\x08\0\0\0\x04abcd",
    "deep JSON": (
        lambda deep: (len(deep) + 4).to_bytes(4, "big") + len(deep).to_bytes(4, "big") + deep
    )(b'{"extFields":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "short binary header": b"\0\0\0\x08\x01\0\0\x04abcd",
    "TLS on a plain port": b"\x16\x03\x01\x02\0\x01",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_closes_its_own_connection_only(
    run: Run, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running() as it:
            await it.call(ECHO)
            reader, writer = await it.stranger()
            writer.write(data)
            assert await is_cut_off(reader)
            writer.close()
            assert (await it.call(ECHO, b"still")).body == b"still"

    run(scenario)
    lines = [record for record in caplog.records if record.name == "cometmq.remoting"]
    assert len(lines) == 1
    assert lines[0].exc_info is None
    assert "127.0.0.1:" in lines[0].getMessage()


def test_one_byte_at_a_time(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            reader, writer = await it.stranger()
            for byte in encode_bytes(Command(ECHO, opaque=5, body=b"slowly", encoding=BINARY)):
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
            assert (await read_reply(reader)).body == b"slowly"
            writer.close()

    run(scenario)


@pytest.mark.parametrize("sent_bytes", [0, 3, 20])
@pytest.mark.parametrize("reset", [False, True], ids=["fin", "reset"])
def test_peer_that_leaves_in_the_middle(run: Run, sent_bytes: int, reset: bool) -> None:
    async def scenario() -> None:
        async with running() as it:
            await it.call(ECHO)
            _, writer = await it.stranger()
            writer.write(encode_bytes(Command(ECHO))[:sent_bytes])
            await asyncio.sleep(0.02)
            if reset:
                writer.transport.abort()
            writer.close()
            await asyncio.sleep(0.02)
            assert len(it.server.connections) == 1
            assert (await it.call(ECHO, b"x")).body == b"x"

    run(scenario)


def test_slow_reader_is_bounded_and_cut_off_while_others_are_served(run: Run) -> None:
    async def scenario() -> None:
        config = RemotingServerConfig(
            outgoing_high_bytes=1 << 16,
            send_buffer_bytes=1 << 16,
            slow_reader_seconds_max=0.2,  # type: ignore[arg-type]
        )
        async with running(config) as it:
            await it.call(ECHO)
            with socket.socket() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
                sock.connect(("127.0.0.1", it.port))
                sock.sendall(encode_bytes(Command(BIG)) * 500)

                def is_slow() -> Connection | None:
                    return next((each for each in it.server.connections if each.is_congested), None)

                slow = await eventually(is_slow)
                assert (await it.call(ECHO, b"x")).body == b"x"
                # One reply is under way; the other 499 requests wait to be handled.
                assert slow.outgoing_bytes <= BIG_BYTES + 100
                await eventually(lambda: slow.is_closed)
            await eventually(lambda: len(it.server.connections) == 1)

    run(scenario)


def test_reader_that_catches_up_gets_every_reply(run: Run) -> None:
    async def scenario() -> None:
        config = RemotingServerConfig(outgoing_high_bytes=1 << 16)
        async with running(config) as it:
            reader, writer = await it.stranger()
            writer.write(b"".join(encode_bytes(Command(BIG, opaque=n)) for n in range(20)))
            await asyncio.sleep(0.05)
            decoder = FrameDecoder()
            opaques: list[int] = []
            while len(opaques) < 20:
                opaques += [each.opaque for each in decoder.feed(await reader.read(1 << 20))]
            assert opaques == list(range(20))
            writer.close()

    run(scenario)


def test_idle_connections_and_silent_sockets_are_closed(run: Run) -> None:
    async def scenario() -> None:
        closed: list[Connection] = []
        config = RemotingServerConfig(idle_seconds_max=0.1)  # type: ignore[arg-type]
        async with running(config, on_close=closed.append) as it:
            reader, writer = await it.stranger()
            await it.call(ECHO)
            assert await is_cut_off(reader)
            writer.close()
            await asyncio.sleep(0.05)
            assert len(closed) == 1
            assert (await it.call(ECHO, b"again")).body == b"again"

    run(scenario)


def test_connection_limit_refuses_and_recovers(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running(RemotingServerConfig(connections_max=2)) as it:
            await it.call(ECHO)
            _, second = await it.stranger()
            await asyncio.sleep(0.02)
            for _ in range(3):
                reader, third = await it.stranger()
                assert await is_cut_off(reader)
                third.close()
            second.close()
            await asyncio.sleep(0.02)
            reader, fourth = await it.stranger()
            fourth.write(encode_bytes(Command(ECHO, body=b"in")))
            assert (await read_reply(reader)).body == b"in"
            fourth.close()

    run(scenario)
    refusals = [line for line in caplog.messages if "connections refused" in line]
    assert refusals == [
        "connections refused count=1 reason=2 are open, the limit (serverConnectionsMax)"
    ]


def test_connections_of_one_address_are_bounded(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Sockets that have not said a word count, too; another address is served, and closed ones leave room."""

    async def scenario() -> None:
        config = RemotingServerConfig(connections_per_address_max=2)
        dispatcher = processors()
        server = RemotingServer(dispatcher, config=config)
        port = await server.start("127.0.0.1", 0)
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        streams[0][1].write(encode_bytes(Command(ECHO, body=b"first")))
        assert (await read_reply(streams[0][0])).body == b"first"
        reader, refused = await asyncio.open_connection("127.0.0.1", port)
        assert await is_cut_off(reader)
        reader, other = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=("127.0.0.2", 0)
        )
        other.write(encode_bytes(Command(ECHO, body=b"other")))
        assert (await read_reply(reader)).body == b"other"
        assert dispatcher.reached.counts == {"serverConnectionsPerAddressMax": 1}
        for _, writer in (*streams, (reader, refused)):
            writer.close()
        await eventually(lambda: len(server.connections) == 1)
        reader, again = await asyncio.open_connection("127.0.0.1", port)
        again.write(encode_bytes(Command(ECHO, body=b"again")))
        assert (await read_reply(reader)).body == b"again"
        for writer in (other, again):
            writer.close()
        await server.stop()

    run(scenario)
    (line,) = [line for line in caplog.messages if "connections refused" in line]
    assert "2 are open from 127.0.0.1, the limit for one address" in line


def test_stop_answers_what_is_under_way_and_takes_nothing_new(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            under_way = asyncio.create_task(it.call(LATER, b"0.1"))
            await it.call(ECHO)
            (connection,) = it.server.connections
            assert connection.handlers_running == 1
            stopping = asyncio.create_task(it.server.stop(grace=5.0))
            await asyncio.sleep(0.01)
            with pytest.raises(ConnectionRefusedError):
                await it.stranger()
            assert (await under_way).body == b"0.1"
            await stopping
            with pytest.raises((ConnectFailed, ConnectionLost)):
                await it.call(ECHO)

    run(scenario)


def test_stop_with_unread_requests_does_not_take_back_replies(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
            writer.write(encode_bytes(Command(ECHO, opaque=1, body=b"first")))
            await writer.drain()
            # The reply is here, but this side has not read it when the server stops with more to read.
            await asyncio.sleep(0.05)
            it.server.quiesce()
            writer.write(encode_bytes(Command(ECHO, opaque=2, body=bytes(100_000))) * 20)
            await asyncio.sleep(0.05)
            stopping = asyncio.create_task(it.server.stop())
            await asyncio.sleep(0.05)
            reply = await read_reply(reader)
            assert (reply.opaque, bytes(reply.body)) == (1, b"first")
            assert await reader.read() == b""
            writer.close()
            await stopping

    run(scenario)


def test_accepted_connections_do_not_wait_for_acknowledgements(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            await it.client.call(it.address, Command(ECHO, body=b"x"), 5)
            [connection] = it.server.connections
            sock = connection._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(scenario)


def test_stop_does_not_wait_beyond_its_grace(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            call = asyncio.create_task(it.call(LATER, b"60"))
            await asyncio.sleep(0.05)
            async with asyncio.timeout(2):
                await it.server.stop(grace=0.05)
            with pytest.raises(ConnectionLost):
                await call

    run(scenario)


def test_client_connects_again_after_the_server_came_back(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            await it.call(ECHO)
            await it.server.stop()
            await asyncio.sleep(0.01)
            with pytest.raises(ConnectFailed, match=it.address):
                await it.call(ECHO)
            second = RemotingServer(processors())
            await second.start("127.0.0.1", it.port)
            assert (await it.call(ECHO, b"back")).body == b"back"
            await second.stop()

    run(scenario)


def test_whoever_wants_to_know_hears_of_each_opened_connection(run: Run) -> None:
    async def scenario() -> None:
        opened: list[str] = []
        async with running() as one:
            client = RemotingClient(on_open=opened.append)
            for count in (1, 2):
                await client.call(one.address, Command(ECHO, body=b"x"))
                await client.call(one.address, Command(ECHO, body=b"y"))
                assert opened == [one.address] * count
                (connection,) = client.connections
                connection.close("a test")
                while client.connections:
                    await asyncio.sleep(0)
            await client.close()

    run(scenario)


def test_client_that_cannot_connect_says_why(run: Run) -> None:
    async def scenario() -> None:
        client = RemotingClient()
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1: "):
            await client.call("127.0.0.1:1", Command(ECHO))
        with pytest.raises(UsageError):
            await client.call("nonsense", Command(ECHO))
        await client.close()
        with pytest.raises(ConnectFailed, match="this client is closed"):
            await client.call("127.0.0.1:1", Command(ECHO))

    run(scenario)


def test_cancelled_caller_does_not_end_the_connecting_of_others(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            first = asyncio.create_task(it.call(ECHO))
            second = asyncio.create_task(it.call(ECHO, b"2"))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).body == b"2"
            assert first.cancelled()

    run(scenario)


def test_closing_the_client_ends_its_calls(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            waiting = asyncio.create_task(it.call(NEVER))
            await asyncio.sleep(0.02)
            connecting = asyncio.create_task(it.client.call("127.0.0.2:9", Command(ECHO)))
            await asyncio.sleep(0)
            await it.client.close()
            with pytest.raises(ConnectionLost):
                await waiting
            with pytest.raises(ConnectFailed):
                await connecting

    run(scenario)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
@pytest.mark.parametrize("host", ["::1", ""])
def test_ipv6_peers_are_served(run: Run, host: str) -> None:
    async def scenario() -> None:
        server = RemotingServer(processors())
        client = RemotingClient()
        port = await server.start(host, 0)
        reply = await client.call(f"[::1]:{port}", Command(ECHO, body=b"six"))
        assert reply.body == b"six"
        (connection,) = server.connections
        assert connection.peer.startswith("[::1]:")
        assert len(connection.peer_host) == 20
        if not host:
            assert (await client.call(f"127.0.0.1:{port}", Command(ECHO, body=b"4"))).body == b"4"
        await client.close()
        await server.stop()

    run(scenario)


def test_address_in_use_is_a_clear_error(run: Run) -> None:
    async def scenario() -> None:
        async with running() as it:
            other = RemotingServer(processors())
            with pytest.raises(RemotingError, match=f"127.0.0.1:{it.port}: .*another server"):
                await other.start("127.0.0.1", it.port)
            with pytest.raises(RemotingError, match=r"no\.such\.host\.invalid"):
                await other.start("no.such.host.invalid", 0)
            await other.stop()

    run(scenario)
