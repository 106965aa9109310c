"""A name server and a broker in one process on one event loop, for people who just want a queue.

``cometmq up`` runs it with a data directory, ``cometmq.testing.cluster`` inside a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer


class Standalone:
    """``async with Standalone(data_directory) as servers``: both run inside the block.

    Args:
        data_directory: where the servers keep all their data.
        namesrv_port: 0 takes any free port.
        broker_port: 0 takes any free port.
        bind_address: the address that both listen on, also given to clients.
        broker_settings: further ``broker.conf`` keys.
    """

    def __init__(
        self,
        data_directory: str,
        *,
        namesrv_port: int = 9876,
        broker_port: int = 10911,
        bind_address: str = "127.0.0.1",
        broker_settings: Mapping[str, str] | None = None,
    ) -> None:
        self._data_directory = data_directory
        self._namesrv_port = namesrv_port
        self._broker_port = broker_port
        self._bind_address = bind_address
        self._broker_settings = dict(broker_settings or {})
        self._stack = AsyncExitStack()
        self.name_server: NameServer
        self.broker: Broker

    @property
    def name_server_address(self) -> str:
        return f"{self._bind_address}:{self.name_server.port}"

    @property
    def broker_address(self) -> str:
        return f"{self._bind_address}:{self.broker.port}"

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        namesrv_config, _ = load_namesrv_config(
            {
                "listenPort": str(self._namesrv_port),
                "bindAddress": self._bind_address,
                "kvConfigPath": f"{self._data_directory}/namesrv/kvConfig.json",
                "configStorePath": f"{self._data_directory}/namesrv/namesrv.properties",
            }
        )
        self.name_server = NameServer(namesrv_config)
        await self.name_server.start()
        self._stack.push_async_callback(self.name_server.stop)
        broker_config, _ = load_broker_config(
            {
                "brokerName": "standalone",
                "bindAddress": self._bind_address,
                "brokerIP1": self._bind_address,
                "listenPort": str(self._broker_port),
                "namesrvAddr": self.name_server_address,
                "storePathRootDir": f"{self._data_directory}/store",
                **self._broker_settings,
            }
        )
        self.broker = Broker(broker_config)
        await self.broker.start()
        self._stack.push_async_callback(self.broker.stop)
