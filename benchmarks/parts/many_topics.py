"""Gives a group so many topics that whatever is done for each of them counts."""

from __future__ import annotations

import asyncio
from functools import partial

from benchmarks.parts.controlled_group import ControlledGroup
from benchmarks.parts.waiting import until
from tests.interop.admin_calls import create_topic
from tests.interop.servers import ask
from tests.interop.systems import Broker

from cometmq.protocol.codes import RequestCode
from cometmq.remoting.client import RemotingClient

AT_ONCE = 100


async def make_topics(group: ControlledGroup, count: int) -> None:
    """On return all brokers have them."""
    address, client = (await group.master()).address, RemotingClient()
    try:
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, count))
            await asyncio.gather(
                *(create_topic(client, address, f"topic-{number:06}", 4) for number in numbers)
            )
    finally:
        await client.close()
    last = f'"topic-{count - 1:06}"'.encode()
    for broker in group.brokers:
        await until(partial(_has, broker, last), f"all topics at {broker.address}")


def _has(broker: Broker, name: bytes) -> bool:
    return name in ask(broker.port, RequestCode.GET_ALL_TOPIC_CONFIG, {})[1]
