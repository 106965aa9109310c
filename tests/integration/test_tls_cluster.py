"""A broker and a name server that speak nothing but TLS, also to each other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import trustme
from tests.integration.servers import running_broker, running_name_server

from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.remoting.tls import load_tls_config

from .test_namesrv import registration

GET_ROUTE = 105


async def test_a_broker_registers_over_tls(tmp_path: Path) -> None:
    tls_file = _tls_file(tmp_path)
    tls = {"tls.config.file": str(tls_file)}
    async with (
        running_name_server(**tls) as address,
        running_broker(tmp_path / "store", brokerName="guarded", namesrvAddr=address, **tls),
    ):
        client = RemotingClient(tls=load_tls_config(str(tls_file)))
        try:
            route = await client.call(address, Command(code=GET_ROUTE, ext={"topic": "TBW102"}))
            assert route.code == 0
            assert b'"guarded"' in bytes(route.body)
        finally:
            await client.close()


async def test_a_name_server_tells_brokers_over_tls(tmp_path: Path) -> None:
    tls_file = str(_tls_file(tmp_path))
    settings = {"tls.config.file": tls_file, "notifyMinBrokerIdChanged": "true"}
    told: asyncio.Queue[Command] = asyncio.Queue()

    def take(connection: Connection, command: Command) -> None:
        told.put_nowait(command)

    dispatcher = Dispatcher()
    dispatcher.add(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, take)
    slave = RemotingServer(dispatcher, tls=load_tls_config(tls_file))
    port = await slave.start("127.0.0.1", 0)
    client = RemotingClient(tls=load_tls_config(tls_file))
    try:
        async with running_name_server(**settings) as address:
            await client.call(address, registration(1, f"127.0.0.1:{port}"))
            await client.call(address, registration())
            notice = await asyncio.wait_for(told.get(), 10)
            assert (notice.ext or {})["minBrokerId"] == "0"
            await client.close()
    finally:
        await client.close()
        await slave.stop()


def _tls_file(directory: Path) -> Path:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key, trust = (directory / name for name in ("chain.pem", "key.pem", "trust.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(trust))
    file = directory / "tls.properties"
    file.write_text(
        "tls.server.mode=enforcing\n"
        f"tls.server.certPath={chain}\n"
        f"tls.server.keyPath={key}\n"
        "tls.enable=true\n"
        "tls.client.authServer=true\n"
        f"tls.client.trustCertPath={trust}\n",
        encoding="utf-8",
    )
    return file
