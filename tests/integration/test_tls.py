"""TLS and plain text on one port, in every mode, with certificates made for the test, on both event loops."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from tests.eventually import eventually
from tests.integration.conftest import Run

from cometmq.base.errors import ConfigError, ConnectFailed, RemotingError
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.remoting_config import RemotingServerConfig
from cometmq.remoting.server import RemotingServer
from cometmq.remoting.tls import TlsConfig, tls_config_of

ECHO, BIG = 1, 2
BIG_BYTES = 3 << 20

Values = dict[str, str]


class Certificates:
    """An authority with a server and a client, and a second authority that nobody trusts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = trustme.CA()
        self.trust_path = self._write("ca.pem", self.authority.cert_pem)
        self.server = self._issue("server", self.authority, "localhost", "127.0.0.1")
        self.elsewhere = self._issue("elsewhere", self.authority, "elsewhere.example")
        self.client = self._issue("client", self.authority, "client.example")
        self.stranger = self._issue("stranger", trustme.CA(), "127.0.0.1")

    def _issue(self, name: str, authority: trustme.CA, *hosts: str) -> tuple[str, str]:
        issued = authority.issue_cert(*hosts)
        chain = self._write(f"{name}.pem", *issued.cert_chain_pems)
        return chain, self._write(f"{name}.key", issued.private_key_pem)

    def _write(self, name: str, *blobs: trustme.Blob) -> str:
        path = self._directory / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(path)

    def server_values(self, pair: tuple[str, str] | None = None, **extra: str) -> Values:
        cert, key = pair or self.server
        values = {"tls.server.certPath": cert, "tls.server.keyPath": key}
        return values | {f"tls.server.{name}": value for name, value in extra.items()}

    def client_values(self, pair: tuple[str, str] | None = None, **extra: str) -> Values:
        values = {
            "tls.enable": "true",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": self.trust_path,
        }
        if pair is not None:
            values |= {"tls.client.certPath": pair[0], "tls.client.keyPath": pair[1]}
        return values | {f"tls.client.{name}": value for name, value in extra.items()}

    def asking_clients(self, need: str) -> Values:
        asking = self.server_values(authClient="true", trustCertPath=self.trust_path)
        return asking | {"tls.server.need.client.auth": need}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


@asynccontextmanager
async def serving(
    tls: TlsConfig | None,
    config: RemotingServerConfig | None = None,
    reached: Reached | None = None,
) -> AsyncIterator[str]:
    def echo(connection: Connection, command: Command) -> Command:
        return command.reply(body=command.body)

    def big(connection: Connection, command: Command) -> Command:
        return command.reply(body=bytes(BIG_BYTES))

    dispatcher = Dispatcher()
    dispatcher.add(ECHO, echo)
    dispatcher.add(BIG, big)
    dispatcher.reached = reached or dispatcher.reached
    server = RemotingServer(dispatcher, config=config, tls=tls)
    port = await server.start("127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop()
        assert not server.connections


async def call(address: str, tls: Values | None, body: bytes = b"hello") -> bytes:
    client = RemotingClient(tls=None if tls is None else tls_config_of(tls))
    try:
        reply = await client.call(address, Command(ECHO, body=body), 3.0)
        return bytes(reply.body)
    finally:
        await client.close()
        assert not client.connections


def test_permissive_serves_both_on_one_port(run: Run, certificates: Certificates) -> None:
    async def scenario() -> None:
        async with serving(tls_config_of(certificates.server_values())) as address:
            assert await call(address, certificates.client_values()) == b"hello"
            assert await call(address, None) == b"hello"

    run(scenario)


def test_enforcing_refuses_plain_text(
    run: Run, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(tls_config_of(certificates.server_values(mode="enforcing"))) as address:
            assert await call(address, certificates.client_values()) == b"hello"
            with pytest.raises(RemotingError):
                await call(address, None)

    run(scenario)
    (line,) = caplog.messages
    assert "reason=plain text, but tls.server.mode=enforcing" in line


@pytest.mark.parametrize("mode", ["disabled", "no certificate", "no settings"])
def test_plain_server_refuses_tls(
    run: Run, certificates: Certificates, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        tls: TlsConfig | None = None
        if mode == "disabled":
            tls = tls_config_of(certificates.server_values(mode="disabled"))
        elif mode == "no certificate":
            tls = TlsConfig()
        async with serving(tls) as address:
            assert await call(address, None) == b"hello"
            with pytest.raises(ConnectFailed):
                await call(address, certificates.client_values())

    run(scenario)
    (line,) = caplog.messages
    assert "reason=TLS, but no tls.server.certPath" in line


def test_client_refuses_a_server_it_does_not_trust(run: Run, certificates: Certificates) -> None:
    async def scenario() -> None:
        untrusted = tls_config_of(certificates.server_values(certificates.stranger))
        async with serving(untrusted) as address:
            with pytest.raises(ConnectFailed, match="TLS"):
                await call(address, certificates.client_values())
            # RocketMQ's default: the line is secret, the server unverified.
            assert await call(address, {"tls.enable": "true"}) == b"hello"

    run(scenario)


def test_hostname_is_compared_only_on_demand(run: Run, certificates: Certificates) -> None:
    async def scenario() -> None:
        misnamed = tls_config_of(certificates.server_values(certificates.elsewhere))
        async with serving(misnamed) as address:
            assert await call(address, certificates.client_values()) == b"hello"
            with pytest.raises(ConnectFailed, match="TLS"):
                await call(address, certificates.client_values(checkHostname="true"))
        async with serving(tls_config_of(certificates.server_values())) as address:
            values = certificates.client_values(checkHostname="true")
            assert await call(address, values) == b"hello"

    run(scenario)


@pytest.mark.parametrize("need", ["require", "optional"])
def test_client_certificates(run: Run, certificates: Certificates, need: str) -> None:
    async def scenario() -> None:
        async with serving(tls_config_of(certificates.asking_clients(need))) as address:
            known = certificates.client_values(certificates.client)
            assert await call(address, known) == b"hello"
            with pytest.raises(RemotingError):
                await call(address, certificates.client_values(certificates.stranger))
            if need == "optional":
                assert await call(address, certificates.client_values()) == b"hello"
            else:
                with pytest.raises(RemotingError):
                    await call(address, certificates.client_values())

    run(scenario)


def test_demanding_certificates_without_verifying_them_is_refused(
    certificates: Certificates,
) -> None:
    values = certificates.server_values() | {"tls.server.need.client.auth": "require"}
    with pytest.raises(ConfigError, match=r"tls\.server\.trustCertPath"):
        tls_config_of(values).server_context()


def test_large_replies_and_back_pressure_over_tls(run: Run, certificates: Certificates) -> None:
    async def scenario() -> None:
        config = RemotingServerConfig(outgoing_high_bytes=1 << 16)
        async with serving(tls_config_of(certificates.server_values()), config) as address:
            client = RemotingClient(tls=tls_config_of(certificates.client_values()))
            calls = [client.call(address, Command(BIG), 10.0) for _ in range(6)]
            assert [len(reply.body) for reply in await asyncio.gather(*calls)] == [BIG_BYTES] * 6
            await client.close()

    run(scenario)


async def outcome(address: str, data: bytes) -> bytes:
    """What a raw peer reads until the server closes."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        async with asyncio.timeout(5):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "data", [b"\x16", b"\x16\x03\x01", b"\x16" + b"garbage" * 100], ids=["one", "three", "garbage"]
)
def test_handshake_that_stalls_or_breaks_is_ended(
    run: Run, certificates: Certificates, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        config = RemotingServerConfig(handshake_millis_max=100)
        tls = tls_config_of(certificates.server_values(mode="enforcing"))
        async with serving(tls, config) as address:
            assert b"hello" not in await outcome(address, data)
            assert await call(address, certificates.client_values()) == b"hello"

    run(scenario)
    (line,) = caplog.messages
    assert "tls handshake failed peer=127.0.0.1:" in line


def test_one_handshake_too_many_ends_the_oldest(run: Run, certificates: Certificates) -> None:
    """Peers that begin a handshake and then wait cannot keep others out."""

    async def scenario() -> None:
        reached = Reached()
        config = RemotingServerConfig(handshakes_max=2)
        tls = tls_config_of(certificates.server_values(mode="enforcing"))
        async with serving(tls, config, reached) as address:
            host, port = address.split(":")
            streams = []
            for count in range(4):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"\x16\x03\x01")
                streams.append((reader, writer))
                ended = max(count - 1, 0)
                await eventually(lambda: reached.counts.get("tlsHandshakesMax", 0) >= ended)  # noqa: B023
            async with asyncio.timeout(5):
                for reader, _ in streams[:2]:
                    assert await reader.read() == b""
            assert await call(address, certificates.client_values()) == b"hello"
            assert reached.counts["tlsHandshakesMax"] == 3
            for _, writer in streams:
                writer.close()

    run(scenario)


def test_garbage_inside_tls_closes_that_connection(
    run: Run, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(tls_config_of(certificates.server_values())) as address:
            context = ssl.create_default_context(cafile=certificates.trust_path)
            host, port = address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(encode_bytes(Command(ECHO, body=b"first")) + b"\xff" * 20)
            async with asyncio.timeout(5):
                assert b"first" in await reader.read()
            writer.close()
            await asyncio.sleep(0.05)

    run(scenario)
    assert [line for line in caplog.messages if "reason=frame of -1 bytes" in line]


def test_server_stops_while_a_handshake_is_under_way(run: Run, certificates: Certificates) -> None:
    async def scenario() -> None:
        async with serving(tls_config_of(certificates.server_values())) as address:
            host, port = address.split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"\x16\x03")
            await asyncio.sleep(0.05)
        writer.close()

    run(scenario)
