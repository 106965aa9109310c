"""Brokers that watch each other: the name server lists the slave as the master of readers while there is none."""

from __future__ import annotations

from pathlib import Path

from tests.eventually import eventually
from tests.integration.client.consuming import Taken, config, numbered
from tests.integration.replica_group import TOPIC, replica_group

from cometmq.client.aio.push.push_consumer import PushConsumer

FAIL_OVER_SECONDS = 30.0


async def test_a_slave_is_listed_in_place_of_its_master(tmp_path: Path) -> None:
    async with replica_group(
        tmp_path,
        supportActingMaster="true",
        notifyMinBrokerIdChanged="true",
    ) as group:
        taken = Taken()
        consumer = PushConsumer(
            "readers", name_servers=group.name_server, listener=taken.listener, config=config()
        )
        consumer.subscribe(TOPIC)

        async def listed() -> tuple[dict[int, str], int]:
            route = await group.route()
            return route.broker_datas[0].broker_addrs, route.queue_datas[0].perm

        async with consumer:
            await eventually(lambda: consumer.queues)
            await group.kill_master()
            group.put(numbered(20))
            await eventually(lambda: len(taken.messages) >= 20, seconds=FAIL_OVER_SECONDS)
            assert await listed() == ({0: group.slave.address}, 4)
            await group.bring_master_back()

            async def is_back() -> bool:
                both = {0: group.master.address, 1: group.slave.address}
                return await listed() == (both, 6) and group.slave.core.master.is_there

            await eventually(is_back, seconds=FAIL_OVER_SECONDS)
        assert sorted(map(int, taken.counts())) == list(range(20))
