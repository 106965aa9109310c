"""A broker and a name server that speak nothing but TLS, also to each other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import trustme

from cometmq.broker.config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.namesrv.config import load_namesrv_config
from cometmq.namesrv.server import NameServer
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.remoting.tls import load_tls_config

from .test_namesrv import registration

GET_ROUTE = 105


def test_a_broker_registers_over_tls(tmp_path: Path) -> None:
    tls_file = _tls_file(tmp_path)
    names, _ = load_namesrv_config({"listenPort": "0", "tls.config.file": str(tls_file)})

    async def main() -> None:
        name_server = NameServer(names)
        await name_server.start()
        address = f"127.0.0.1:{name_server.port}"
        config, _ = load_broker_config(
            {
                "listenPort": "0",
                "brokerName": "guarded",
                "namesrvAddr": address,
                "storePathRootDir": str(tmp_path / "store"),
                "mappedFileSizeCommitLog": str(1 << 20),
                "tls.config.file": str(tls_file),
            }
        )
        broker = Broker(config)
        await broker.start()
        client = RemotingClient(tls=load_tls_config(str(tls_file)))
        try:
            route = await client.call(address, Command(code=GET_ROUTE, ext={"topic": "TBW102"}))
            assert route.code == 0
            assert b'"guarded"' in bytes(route.body)
        finally:
            await client.close()
            await broker.stop()
            await name_server.stop()

    asyncio.run(main())


def test_a_name_server_tells_brokers_over_tls(tmp_path: Path) -> None:
    tls_file = str(_tls_file(tmp_path))
    names, _ = load_namesrv_config(
        {"listenPort": "0", "tls.config.file": tls_file, "notifyMinBrokerIdChanged": "true"}
    )

    async def main() -> None:
        told: asyncio.Queue[Command] = asyncio.Queue()

        def take(connection: Connection, command: Command) -> None:
            told.put_nowait(command)

        dispatcher = Dispatcher()
        dispatcher.add(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, take)
        slave = RemotingServer(dispatcher, tls=load_tls_config(tls_file))
        port = await slave.start("127.0.0.1", 0)
        name_server = NameServer(names)
        await name_server.start()
        client = RemotingClient(tls=load_tls_config(tls_file))
        try:
            address = f"127.0.0.1:{name_server.port}"
            await client.call(address, registration(1, f"127.0.0.1:{port}"))
            await client.call(address, registration())
            notice = await asyncio.wait_for(told.get(), 10)
            assert (notice.ext or {})["minBrokerId"] == "0"
        finally:
            await client.close()
            await name_server.stop()
            await slave.stop()

    asyncio.run(main())


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
