"""Signed requests and TLS, as tasks and drivers of the source make them; without Spark."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from cometmq.broker.config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.namesrv.config import load_namesrv_config
from cometmq.namesrv.server import NameServer
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import NoPermission
from cometmq.remoting.auth import is_signed_with
from cometmq.remoting.tls import load_tls_config
from cometmq.spark.cluster import Cluster
from cometmq.spark.discovery import find_queues
from cometmq.spark.fetch import Fetcher, Wanted
from cometmq.spark.ranges import Range
from cometmq.spark.source_options import read_source_options
from cometmq.testing.cluster import cluster
from cometmq.testing.cluster_view import ClusterView

START_SECONDS_MAX = 30.0


def read_empty(name_servers: str, topic: str, **options: str) -> None:
    """All that a query does with servers: routes, offsets, group, commits, pulls."""
    chosen = read_source_options({"nameServers": name_servers, "topic": topic, **options})
    asks = Cluster(chosen.connection)
    fetcher = Fetcher(chosen)
    try:
        queues = find_queues(asks, chosen)
        bounds, failures = asks.bounds(queues)
        for failure in failures.values():
            raise failure
        assert {now.end for now in bounds.values()} == {0}
        asks.group_offsets("readers", queues)
        for failure in asks.commit("readers", dict.fromkeys(queues, 0)).values():
            raise failure
        # Nothing is there: what is wanted beyond is passed over.
        wanted = [Wanted(Range(queue, 0, 1), asks.places(queue.broker_name)) for queue in queues]
        assert list(fetcher.read(wanted)) == []
    finally:
        fetcher.close()
        asks.close()


def test_every_request_is_signed() -> None:
    with cluster() as running:
        view = ClusterView(running.name_servers, running.broker_address, suffix="acl")
        topic = view.create_topic()
        codes: list[int] = []

        def guard(_: object, command: Command) -> Command | None:
            codes.append(command.code)
            if is_signed_with(command, "hush-hush"):
                return None
            return command.reply(ResponseCode.NO_PERMISSION, "not signed")

        running.servers.broker.dispatcher.guards.append(guard)
        lenient = {"failOnDataLoss": "false"}
        read_empty(running.name_servers, topic, accessKey="me", secretKey="hush-hush", **lenient)
        assert len(set(codes)) >= 5
        with pytest.raises(NoPermission, match="not signed"):
            read_empty(running.name_servers, topic, accessKey="me", secretKey="wrong", **lenient)


def test_all_connections_speak_tls(tmp_path: Path) -> None:
    file, trust = _certificates(tmp_path)
    with _tls_servers(tmp_path, file) as name_servers:
        secure = {
            "tls.enable": "true",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(trust),
            "failOnDataLoss": "false",
        }
        read_empty(name_servers, "TBW102", **secure)
        stranger = tmp_path / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(str(stranger))
        for wrong in ({}, {**secure, "tls.client.trustCertPath": str(stranger)}):
            with pytest.raises(Exception, match="no name server answered") as caught:
                read_empty(name_servers, "TBW102", **wrong)
            assert not isinstance(caught.value, AssertionError)


@contextmanager
def _tls_servers(directory: Path, file: Path) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(START_SECONDS_MAX)

    async def start() -> tuple[NameServer, Broker]:
        names, _ = load_namesrv_config({"listenPort": "0", "tls.config.file": str(file)})
        name_server = NameServer(names)
        await name_server.start()
        config, _ = load_broker_config(
            {
                "listenPort": "0",
                "brokerIP1": "127.0.0.1",
                "namesrvAddr": f"127.0.0.1:{name_server.port}",
                "storePathRootDir": str(directory / "store"),
                "mappedFileSizeCommitLog": str(1 << 20),
                "tls.config.file": str(file),
            }
        )
        broker = Broker(config)
        await broker.start()
        return name_server, broker

    try:
        name_server, broker = run(start())
        try:
            yield f"127.0.0.1:{name_server.port}"
        finally:
            run(broker.stop())
            run(name_server.stop())
    finally:
        run(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _certificates(directory: Path) -> tuple[Path, Path]:
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
    load_tls_config(str(file))
    return file, trust
