"""Name servers, controllers and the port for slaves behind the accounts that brokers have."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.raw_client import RawClient
from tests.integration.servers import broker_config, running_broker
from tests.integration.signing_client import SigningClient
from tests.integration.test_access_accounts import INNER, ROOT, SETTINGS, allow, entry, make_user
from tests.integration.test_namesrv import registration

from cometmq.access.door import account_copy
from cometmq.base.errors import ConfigError
from cometmq.broker.access import replica_door
from cometmq.broker.server import Broker
from cometmq.controller.controller_config import SCHEMA
from cometmq.controller.server import Controller
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.testing import cluster

REGISTER, ROUTE, PUT_KV, CONFIG, UNREGISTER = 103, 105, 100, 318, 104
KV = {"namespace": "n", "key": "k", "value": "v"}


@asynccontextmanager
async def name_server(directory: Path, **settings: str) -> AsyncIterator[NameServer]:
    values = {"listenPort": "0", "kvConfigPath": str(directory / "kvConfig.json")}
    server = NameServer(load_namesrv_config({**values, **SETTINGS, **settings})[0])
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def controller(directory: Path, **settings: str) -> AsyncIterator[Controller]:
    values = {"listenPort": "0", "controllerStorePath": str(directory)}
    server = Controller(SCHEMA.load({**values, **SETTINGS, **settings})[0])
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def address(server: NameServer | Controller) -> str:
    return f"127.0.0.1:{server.port}"


def names(server: NameServer) -> set[str]:
    return set(server.table.cluster_info()[0])


async def register(client: RawClient, command: Command) -> Command:
    if isinstance(client, SigningClient):
        sign(command, client.name, client.secret)
    return await client.remoting.call(client.address, command, 10.0)


async def test_no_server_serves_a_request_without_an_account(tmp_path: Path) -> None:
    async with name_server(tmp_path / "n") as one, controller(tmp_path / "c") as two:
        for server in (one, two):
            async with RawClient(address(server)) as stranger:
                for code in sorted(server.dispatcher.codes):
                    reply = await stranger.ask(code, {"topic": "T"})
                    assert (reply.code, reply.remark) == (16, "username cannot be null."), code


async def test_a_name_server_asks_for_what_each_request_declares(tmp_path: Path) -> None:
    async with (
        name_server(tmp_path) as server,
        SigningClient(address(server), "root", ROOT) as root,
    ):
        await make_user(root, "bob", entry("Topic:T*", "Pub"))
        assert (await register(root, registration())).code == 0
        assert (await root.ask(PUT_KV, KV)).code == 0
        assert (await root.ask(CONFIG, None, b"orderMessageEnable=true")).code == 0
        async with SigningClient(address(server), "bob", "bob-pw") as bob:
            assert (await bob.ask(ROUTE, {"topic": "T0"})).code == 0
            # Where topics come from that are not there yet. It belongs to nobody.
            assert (await bob.ask(ROUTE, {"topic": "TBW102"})).code == 17
            assert (await bob.ask(ROUTE, {"topic": "U"})).code == 16
            for code, ext, body in (
                (PUT_KV, KV, b""),
                (CONFIG, None, b"orderMessageEnable=false"),
                (UNREGISTER, registration().ext, b""),
                (REGISTER, registration().ext, bytes(registration().body)),
            ):
                reply = await bob.ask(code, ext, body)
                assert (reply.code, reply.remark) == (
                    16,
                    "User:bob has no permission to access Cluster:* from 127.0.0.1, no matched policies.",
                )
            await allow(root, "bob", entry("Cluster:*", "Update"))
            assert (await bob.ask(PUT_KV, KV)).code == 0
    audit = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert [(line["account"], line["result"]) for line in audit if line["code"] == PUT_KV] == [
        ("root", 0),
        ("bob", 16),
        ("bob", 0),
    ]
    assert ROOT not in (tmp_path / "accounts.json").read_text()
    # What was changed is there after a restart.
    async with (
        name_server(tmp_path) as server,
        SigningClient(address(server), "bob", "bob-pw") as bob,
    ):
        assert (await bob.ask(PUT_KV, KV)).code == 0


async def test_a_broker_signs_what_it_tells_name_servers(tmp_path: Path) -> None:
    async with name_server(tmp_path / "n") as server:
        credentials = {
            "innerClientAuthenticationCredentials": SETTINGS["innerClientAuthenticationCredentials"]
        }
        known = {"brokerName": "known", "namesrvAddr": address(server), **credentials}
        unknown = {"brokerName": "unknown", "namesrvAddr": address(server)}
        async with (
            running_broker(tmp_path / "known", **known),
            running_broker(tmp_path / "unknown", **unknown),
        ):
            assert names(server) == {"known"}
        assert names(server) == set()


async def test_in_mixed_mode_strangers_are_served_but_displace_nobody_with_an_account(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = {"authenticationMode": "optional", "brokerTakeoverEnable": "true"}
    async with (
        name_server(tmp_path, **mixed) as server,
        SigningClient(address(server), "root", ROOT) as root,
        RawClient(address(server)) as stranger,
        SigningClient(address(server), "root", "wrong") as liar,
    ):
        old = registration(address="10.0.0.9:10911")
        assert old.ext is not None
        old.ext["brokerName"] = "old"
        assert (await register(stranger, old)).code == 0
        assert "request without an account" in caplog.text
        assert (await register(liar, registration())).remark == "check signature failed."
        assert (await register(root, registration())).code == 0
        for other in (registration(), registration(address="10.0.0.2:10911")):
            reply = await register(stranger, other)
            assert reply.code == 16
            assert "has registered with an account" in str(reply.remark)
        reply = await stranger.ask(UNREGISTER, registration().ext)
        assert "has registered with an account" in str(reply.remark)
        # Whoever may do this may do everything.
        for code in (CONFIG, 3001, 3005, 29007):
            assert (await stranger.ask(code, {"username": "u"})).code == 16


async def test_a_name_server_can_have_the_accounts_of_its_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(account_copy, "PERIOD_SECONDS", 0.05)
    async with (
        running_broker(tmp_path / "store", **SETTINGS) as broker,
        name_server(tmp_path / "n", accountBrokers=f"127.0.0.1:1;{broker.address}") as server,
        SigningClient(broker.address, "root", ROOT) as root,
    ):
        await make_user(root, "bob", entry("Topic:T*", "Pub"))
        accounts = server.door.accounts
        assert accounts is not None
        await eventually(lambda: "bob" in accounts.accounts.acls, "the accounts")
        async with SigningClient(address(server), "bob", "bob-pw") as bob:
            assert (await bob.ask(ROUTE, {"topic": "T"})).code == 17
        async with SigningClient(address(server), "root", ROOT) as there:
            reply = await there.ask(3001, {"username": "eve"}, {"password": "x"})
            assert "change them there" in str(reply.remark)
    assert "bob" in (tmp_path / "n" / "accounts.json").read_text()


async def test_accounts_stay_when_no_broker_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(account_copy, "PERIOD_SECONDS", 0.01)
    async with name_server(tmp_path, accountBrokers="127.0.0.1:1") as server:
        await eventually(lambda: "accounts not copied" in caplog.text)
        async with SigningClient(address(server), "root", ROOT) as root:
            for _ in range(3):
                assert (await root.ask(3005)).code == 0
    assert caplog.text.count("accounts not copied") == 1


async def test_servers_of_one_process_share_their_accounts() -> None:
    async with cluster(slaves=1, controller=True, settings=SETTINGS) as servers:
        async with SigningClient(servers.broker_address, "root", ROOT) as root:
            await make_user(root, "bob", entry("Topic:T", "Pub"))
        async with SigningClient(servers.name_servers, "bob", "bob-pw") as bob:
            assert (await bob.ask(ROUTE, {"topic": "T"})).code == 17
            assert (await bob.ask(PUT_KV, KV)).code == 16


async def test_a_controller_asks_for_accounts(tmp_path: Path) -> None:
    group = {"clusterName": "c", "brokerName": "b"}
    async with controller(tmp_path) as server, SigningClient(address(server), "root", ROOT) as root:
        await make_user(root, "watcher", entry("Cluster:*", "Get"))
        assert (await root.ask(1012, group)).code == 0
        async with SigningClient(address(server), "watcher", "watcher-pw") as watcher:
            assert (await watcher.ask(1005)).code == 0
            assert (await watcher.ask(1010)).code == 0
            for code in (1001, 1002, 1003, 1009, 1011, 1013, 904):
                assert (await watcher.ask(code, group)).code == 16, code


async def connects(ha_address: str) -> bool:
    """Whether the port for slaves says anything to somebody who reports an empty log."""
    host, _, port = ha_address.rpartition(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(bytes(8))
            return bool(await asyncio.wait_for(reader.read(1), 10))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    except OSError:
        return False


async def test_the_port_for_slaves_is_closed_until_a_broker_has_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    quick = {"haSendHeartbeatInterval": "100"}
    async with running_broker(tmp_path, **SETTINGS, **quick) as broker:
        port = broker.replication.port_address
        assert not await connects(port)
        assert "no signed request of a super user" in caplog.text
        async with SigningClient(broker.address, "root", ROOT) as root:
            await make_user(root, "bob", entry("Cluster:*", "Get"))
            async with SigningClient(broker.address, "bob", "bob-pw") as bob:
                # It may read the table of topics, but not everybody's messages.
                assert (await bob.ask(21)).code == 0
                assert not await connects(port)
            assert (await root.ask(21)).code == 0
            assert await connects(port)
            monkeypatch.setattr(replica_door, "PROOF_SECONDS", 0.0)
            assert not await connects(port)
    async with running_broker(
        tmp_path, **SETTINGS, **quick, haAllowedAddresses="127.0.0.1"
    ) as broker:
        assert await connects(broker.replication.port_address)
    async with running_broker(
        tmp_path, **SETTINGS, **quick, authenticationMode="optional"
    ) as broker:
        assert await connects(broker.replication.port_address)
        assert "slave without an account host=127.0.0.1" in caplog.text


@pytest.mark.parametrize("has_credentials", [True, False])
async def test_a_slave_proves_who_it_is_before_it_connects(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_credentials: bool
) -> None:
    caplog.set_level(logging.INFO)
    key = "innerClientAuthenticationCredentials"
    own = {key: SETTINGS[key]} if has_credentials else {}
    async with (
        name_server(tmp_path / "n", authenticationMode="optional") as server,
        running_broker(tmp_path / "m", namesrvAddr=address(server), **SETTINGS) as master,
        running_broker(
            tmp_path / "s",
            namesrvAddr=address(server),
            brokerRole="SLAVE",
            brokerId="1",
            **own,
        ),
    ):
        if has_credentials:
            await eventually(lambda: len(master.core.replicas) == 1, "the slave follows")
        else:
            await eventually(lambda: "slave refused" in caplog.text, "the refusal")
            assert len(master.core.replicas) == 0


async def test_settings_that_cannot_be_met_refuse_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set accountPath"):
        NameServer(load_namesrv_config(SETTINGS)[0])
    with pytest.raises(ConfigError, match="accountBrokers needs"):
        load_namesrv_config({"accountBrokers": "10.0.0.1:10911"})
    with pytest.raises(ConfigError, match="has no effect without authenticationEnabled"):
        load_namesrv_config({"authenticationMode": "optional"})
    with pytest.raises(ConfigError, match="haTlsEnable=true needs a certificate"):
        await Broker(broker_config(tmp_path, haTlsEnable="true")).start()
    with pytest.raises(ConfigError, match="tlsSubjectAsAccount=true needs certificates"):
        await Broker(broker_config(tmp_path, **SETTINGS, tlsSubjectAsAccount="true")).start()


def open_servers(directory: Path, **settings: str) -> dict[str, Broker | NameServer | Controller]:
    everywhere = {"listenPort": "0", "bindAddress": "0.0.0.0", **settings}
    return {
        "broker": Broker(broker_config(directory / "b", **everywhere)),
        "name server": NameServer(
            load_namesrv_config({**everywhere, "kvConfigPath": str(directory / "kv.json")})[0]
        ),
        "controller": Controller(
            SCHEMA.load({**everywhere, "controllerStorePath": str(directory / "c")})[0]
        ),
    }


@pytest.mark.parametrize("kind", ["broker", "name server", "controller"])
async def test_a_server_that_strangers_can_reach_does_not_start_unless_told_so(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match=rf"this {kind} would listen on 0.0.0.0.*allowAnonymous"):
        await open_servers(tmp_path)[kind].start()
    mixed = {**SETTINGS, "authenticationMode": "optional"}
    with pytest.raises(ConfigError, match="with authenticationMode=optional"):
        await open_servers(tmp_path, **mixed)[kind].start()
    assert "serves anybody" not in caplog.text
    server = open_servers(tmp_path, allowAnonymous="true")[kind]
    await server.start()
    await server.stop()
    assert f"{kind} listens beyond loopback and serves anybody" in caplog.text
    caplog.clear()
    server = open_servers(tmp_path, **SETTINGS)[kind]
    await server.start()
    await server.stop()
    assert "serves anybody" not in caplog.text
    assert INNER not in caplog.text


async def test_a_recorded_request_does_not_yield_the_accounts(tmp_path: Path) -> None:
    """A signature covers neither the code nor the names of fields: any signed request may become this one."""
    async with running_broker(tmp_path, **SETTINGS) as broker:
        recorded = Command(21, {})
        sign(recorded, "inner", INNER)
        async with RawClient(broker.address) as thief:
            for ext in (recorded.ext, {**(recorded.ext or {}), "nonce": ""}):
                reply = await thief.ask(29007, ext)
                assert (reply.code, bytes(reply.body)) == (29, b"")
            honest = Command(29007, {"nonce": "0123456789abcdef"})
            sign(honest, "inner", INNER)
            # Sent again, it is answered, but nobody without the secret can read that.
            reply = await thief.ask(29007, honest.ext)
            assert reply.code == 0
            assert b"username" not in bytes(reply.body)
            assert ROOT.encode() not in bytes(reply.body)


async def test_accounts_are_not_taken_from_a_server_without_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(account_copy, "PERIOD_SECONDS", 0.05)
    evil = {"username": "eve", "password": "eve-pw", "userType": "Super"}

    def give(connection: Connection, command: Command) -> Command:
        return command.reply(body=json.dumps({"users": [evil], "acls": []}).encode())

    dispatcher = Dispatcher()
    dispatcher.add(29007, give)
    false = RemotingServer(dispatcher)
    port = await false.start("127.0.0.1", 0)
    try:
        async with name_server(tmp_path, accountBrokers=f"127.0.0.1:{port}") as server:
            await eventually(lambda: "is none of ours" in caplog.text, "the refusal")
            assert server.door.accounts is not None
            assert "eve" not in server.door.accounts.accounts.users
    finally:
        await false.stop()
