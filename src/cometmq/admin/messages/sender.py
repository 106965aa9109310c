"""The producer of a tool: started with its first message."""

from __future__ import annotations

import asyncio
from typing import Final

from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.producer_config import ProducerConfig

TOOLS_PRODUCER: Final = "TOOLS_PRODUCER"


class ToolProducer:
    def __init__(self, config: ClientConfig) -> None:
        self._config = ProducerConfig(client=config, send_timeout_ms=config.call_millis)
        self._producer: Producer | None = None
        self._starting = asyncio.Lock()

    async def ready(self) -> Producer:
        async with self._starting:
            if self._producer is None:
                producer = Producer(TOOLS_PRODUCER, config=self._config)
                await producer.start()
                self._producer = producer
            return self._producer

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()
