"""The servers that the other tests here rely on can be found, stopped and started."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.client_config import ClientConfig

pytestmark = pytest.mark.timeout(180)


async def test_a_topic_can_be_made_and_the_broker_restarted(
    name_servers: str, broker_control: Any, create_topic: Any
) -> None:
    topic = create_topic(queues=3)

    async def queues() -> tuple[int, str | None]:
        instance = ClientInstance(ClientConfig(name_servers=name_servers))
        try:
            route = await instance.route(topic)
            return route.queue_datas[0].write_queue_nums, instance.broker_address(
                broker_control.name
            )
        finally:
            await instance.release()

    assert await queues() == (3, broker_control.address)
    broker_control.kill()
    broker_control.start()
    assert await queues() == (3, broker_control.address)
