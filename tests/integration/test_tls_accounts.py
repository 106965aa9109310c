"""Certificates as accounts, replication over TLS, and certificates that are renewed under running servers."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest
import trustme
from tests.eventually import eventually
from tests.integration.raw_client import RawClient
from tests.integration.servers import running_broker
from tests.integration.signing_client import SigningClient
from tests.integration.test_access_accounts import ROOT, SETTINGS, entry, make_user
from tests.integration.test_doors import address, name_server

from cometmq.remoting.client import RemotingClient
from cometmq.remoting.tls import tls_config_of


class Authority:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)
        self._authority = trustme.CA()
        self.trust = directory / "trust.pem"
        self._authority.cert_pem.write_to_path(str(self.trust))

    def issue(self, name: str) -> dict[str, str]:
        """Client settings that present a certificate with this common name."""
        chain, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        issued = self._authority.issue_cert("127.0.0.1", common_name=name)
        chain.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        return {
            "tls.enable": "true",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(self.trust),
            "tls.client.certPath": str(chain),
            "tls.client.keyPath": str(key),
        }

    def server(self, name: str, client_auth: str = "optional") -> dict[str, str]:
        """Settings of a server that also connects as ``name``."""
        own = self.issue(name)
        return {
            **own,
            "tls.server.certPath": own["tls.client.certPath"],
            "tls.server.keyPath": own["tls.client.keyPath"],
            "tls.server.need.client.auth": client_auth,
            "tls.server.authClient": "true",
            "tls.server.trustCertPath": str(self.trust),
        }

    def server_file(self, name: str) -> str:
        path = self.directory / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.server(name).items()))
        return str(path)


class CertifiedClient(RawClient):
    def __init__(self, address: str, settings: dict[str, str]) -> None:
        super().__init__(address)
        self.remoting = RemotingClient(tls=tls_config_of(settings))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


async def test_the_name_in_a_certificate_is_an_account(
    tmp_path: Path, authority: Authority
) -> None:
    tls = {"tls.config.file": authority.server_file("server"), "tlsSubjectAsAccount": "true"}
    async with (
        running_broker(tmp_path / "store", **SETTINGS, **tls) as broker,
        SigningClient(broker.address, "root", ROOT) as root,
    ):
        await make_user(root, "bob", entry("Topic:T", "Pub"))
        async with CertifiedClient(broker.address, authority.issue("bob")) as bob:
            assert (await bob.send("T", b"x")).code == 0
            assert "User:bob has no permission" in str((await bob.send("U", b"x")).remark)
            await root.ask(3002, {"username": "bob"}, {"userStatus": "disable"})
            assert (await bob.send("T", b"x")).remark == "User:bob is disabled."
        async with CertifiedClient(broker.address, authority.issue("eve")) as eve:
            assert (await eve.send("T", b"x")).remark == "User:eve is not found."
        async with CertifiedClient(broker.address, authority.issue("root")) as certified:
            assert (await certified.ask(3005)).code == 0
        stranger = Authority(tmp_path / "other")
        settings = {**stranger.issue("root"), "tls.client.trustCertPath": str(authority.trust)}
        async with CertifiedClient(broker.address, settings) as forged:
            with pytest.raises(Exception, match=r"connect|lost|closed"):
                await forged.ask(3005)
        async with RawClient(broker.address) as plain:
            assert (await plain.ask(3005)).remark == "username cannot be null."


async def test_a_name_server_knows_brokers_by_their_certificates(
    tmp_path: Path, authority: Authority
) -> None:
    tls = {"tls.config.file": authority.server_file("inner"), "tlsSubjectAsAccount": "true"}
    async with (
        name_server(tmp_path / "n", **tls) as server,
        running_broker(
            tmp_path / "b",
            brokerName="certified",
            namesrvAddr=address(server),
            **{"tls.config.file": tls["tls.config.file"]},
        ),
    ):
        assert set(server.table.cluster_info()[0]) == {"certified"}


async def test_replication_over_tls(tmp_path: Path, authority: Authority) -> None:
    tls = {"tls.config.file": authority.server_file("inner"), "haTlsEnable": "true"}
    known = {**SETTINGS, **tls, "tlsSubjectAsAccount": "true"}
    async with (
        name_server(tmp_path / "n", **{"tls.config.file": tls["tls.config.file"]}) as server,
        running_broker(tmp_path / "m", namesrvAddr=address(server), **known) as master,
        running_broker(
            tmp_path / "s",
            namesrvAddr=address(server),
            brokerRole="SLAVE",
            brokerId="1",
            **known,
        ) as slave,
    ):
        async with SigningClient(master.address, "root", ROOT) as root:
            assert (await root.send("T", b"secret")).code == 0
        end = master.core.store.max_physical
        await eventually(lambda: slave.core.store.max_physical == end, "the log at the slave")
        [link] = await eventually(lambda: master.replication.port.links, "what the slave confirms")
        assert link.subject == "inner"
        # Plain text gets nothing from it.
        host, _, port = master.replication.port_address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(bytes(8))
        try:
            assert await asyncio.wait_for(reader.read(), 10) == b""
        except ConnectionError:
            pass
        finally:
            writer.close()
        # A certificate of somebody else, too, who has not signed anything. The slave, at the same host, asks no more.
        await slave.replication.stop_following()
        master.access._replica_door._proved_at.clear()  # type: ignore[union-attr]
        context = tls_config_of(authority.issue("bob")).client_context()
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writer.write(bytes(8))
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


async def test_a_running_server_shows_a_renewed_certificate(
    tmp_path: Path, authority: Authority
) -> None:
    file = authority.server_file("server")
    with Path(file).open("a") as settings:
        settings.write("tls.reloadSeconds=1\n")
    async with running_broker(tmp_path / "store", **{"tls.config.file": file}) as broker:
        first = await shown(broker.address)
        async with CertifiedClient(broker.address, authority.issue("bob")) as before:
            assert (await before.send("T", b"x")).code == 0
            authority.issue("server")

            async def is_renewed() -> bool:
                return await shown(broker.address) != first

            await eventually(is_renewed, "the new certificate")
            # Connections stay.
            assert (await before.send("T", b"x")).code == 0


async def shown(server: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _, port = server.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return bytes(certificate)
    finally:
        writer.close()


async def test_strangers_at_the_port_for_slaves_cannot_pile_up_handshakes(
    tmp_path: Path, authority: Authority
) -> None:
    """Each costs a descriptor, of which the store needs some; the slave itself gets in all the same."""
    tls = {"tls.config.file": authority.server_file("inner"), "haTlsEnable": "true"}
    known = {**SETTINGS, **tls, "tlsSubjectAsAccount": "true", "haSendHeartbeatInterval": "100"}
    async with running_broker(tmp_path, **known, tlsHandshakesMax="4") as broker:
        host, _, port = broker.replication.port_address.rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(12)]
        try:
            async with asyncio.timeout(5):
                for reader, _ in silent[:8]:
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
            assert broker.core.reached.counts["tlsHandshakesMax"] == 8
            context = tls_config_of(authority.issue("inner")).client_context()
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(bytes(8))
            assert await asyncio.wait_for(reader.read(1), 10) != b""
            writer.close()
        finally:
            for _, writer in silent:
                writer.close()
