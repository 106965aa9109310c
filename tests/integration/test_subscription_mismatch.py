"""Members of one group with different subscriptions: the broker warns, shows it, and says when it is over."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client import Message, ReceivedMessage
from cometmq.client.aio import Producer, PushConsumer
from cometmq.protocol import fastjson
from cometmq.testing.cluster import Cluster, cluster

from .raw_client import RawClient

GROUP = "Billing"
TOPIC = "Orders"


async def mismatch(admin: RawClient) -> Any:
    """What the connection info says, None when members agree."""
    reply = await admin.ask(203, {"consumerGroup": GROUP})
    assert reply.code == 0, reply.remark
    return fastjson.loads(bytes(reply.body)).get("subscriptionMismatch")


async def ignore(message: ReceivedMessage) -> None:
    pass


def member(servers: Cluster, tags: str) -> PushConsumer:
    consumer = PushConsumer(GROUP, listener=ignore, name_servers=servers.name_servers)
    consumer.subscribe(TOPIC, tags)
    return consumer


async def test_it_is_told_shown_and_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cometmq.broker")

    def told(level: int) -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.name == "cometmq.broker"
            and record.levelno == level
            and record.getMessage().startswith("subscriptions ")
        ]

    async with cluster() as servers, RawClient(servers.broker_address) as admin:
        async with Producer("shop", name_servers=servers.name_servers) as producer:
            await producer.send(Message(topic=TOPIC, body=b"x", tags="paid"))
        async with member(servers, "paid || cancelled") as first:
            assert await mismatch(admin) is None
            async with member(servers, "paid") as second:
                (only,) = await mismatch(admin)
                assert only["topic"] == TOPIC
                wishes = {camp["subString"]: camp["clientIds"] for camp in only["camps"]}
                assert sorted(wishes) == ["paid", "paid || cancelled"]
                (line,) = told(logging.WARNING)
                for word in (GROUP, TOPIC, "'paid'", "'paid || cancelled'"):
                    assert word in line
                ids = {consumer._instance.client_id for consumer in (first, second)}  # type: ignore[union-attr]
                assert {each for camp in wishes.values() for each in camp} == ids
                assert all(each in line for each in ids)

                # They are brought to agree while they run.
                second.subscribe(TOPIC, "cancelled || paid")

                async def agree() -> bool | None:
                    return True if await mismatch(admin) is None else None

                await eventually(agree, "members that agree")
                assert len(told(logging.WARNING)) == 1
                (end,) = told(logging.INFO)
                assert f"group={GROUP} topic={TOPIC}" in end

                second.subscribe("Refunds")

                async def differ() -> Any:
                    return await mismatch(admin)

                (only,) = await eventually(differ, "members that differ again")
                assert [camp.get("subString") for camp in only["camps"]].count(None) == 1
                assert "not subscribed" in told(logging.WARNING)[-1]
            # Whoever is left agrees with itself.
            await eventually(agree, "one member left")
        assert len(told(logging.WARNING)) == len(told(logging.INFO)) == 2
