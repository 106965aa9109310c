"""A name server and a broker that speak nothing but TLS, with certificates made for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization

from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer
from cometmq.remoting.tls import load_tls_config

START_SECONDS_MAX = 30.0
PASSWORD = "swordfish"


@contextmanager
def tls_servers(directory: Path, file: Path) -> Iterator[str]:
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


def certificates(directory: Path) -> tuple[Path, dict[str, str]]:
    """The file for servers, which want a certificate of everybody, and the options for who calls them."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key, trust = (directory / name for name in ("chain.pem", "key.pem", "trust.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    key.write_bytes(_encrypted(certificate.private_key_pem.bytes()))
    authority.cert_pem.write_to_path(str(trust))
    client = {
        "tls.enable": "true",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": str(trust),
        "tls.client.checkHostname": "true",
        "tls.client.certPath": str(chain),
        "tls.client.keyPath": str(key),
        "tls.client.keyPassword": PASSWORD,
        "tls.protocols": "TLSv1.2,TLSv1.3",
        "tls.ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384",
        "tls.reloadSeconds": "60",
    }
    server = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(chain),
        "tls.server.keyPath": str(key),
        "tls.server.keyPassword": PASSWORD,
        "tls.server.authClient": "true",
        "tls.server.need.client.auth": "require",
        "tls.server.trustCertPath": str(trust),
    }
    file = directory / "tls.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in (client | server).items()))
    load_tls_config(str(file))
    return file, client


def _encrypted(key_pem: bytes) -> bytes:
    key = serialization.load_pem_private_key(key_pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
