"""A broker and a name server of the test's own event loop, on free ports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cometmq.broker.config.broker_config import BrokerConfig, load_broker_config
from cometmq.broker.server import Broker
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer


def broker_config(directory: Path, **settings: str) -> BrokerConfig:
    """Of a broker named ``b`` with small files, unless the settings say otherwise."""
    config, _ = load_broker_config(
        {
            "brokerName": "b",
            "bindAddress": "127.0.0.1",
            "brokerIP1": "127.0.0.1",
            "listenPort": "0",
            "storePathRootDir": str(directory),
            "mappedFileSizeCommitLog": str(1 << 20),
            "mappedFileSizeConsumeQueue": "20000",
            "maxHashSlotNum": "100",
            "maxIndexNum": "400",
            # No test may depend on how fast the machine is; those of this refusal switch it on.
            "brokerFastFailureEnable": "false",
            **settings,
        }
    )
    return config


@asynccontextmanager
async def running_broker(directory: Path, **settings: str) -> AsyncIterator[Broker]:
    broker = Broker(broker_config(directory, **settings))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@asynccontextmanager
async def running_name_server(**settings: str) -> AsyncIterator[str]:
    """Its address. It keeps nothing."""
    config, _ = load_namesrv_config(
        {"bindAddress": "127.0.0.1", "listenPort": "0", "kvConfigPath": "", **settings}
    )
    server = NameServer(config)
    await server.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.stop()
