"""A controller as users start one: ``testing.cluster(controller=True)`` and ``cometmq up --controller``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.test_replicated_cluster import bodies_of, producer_of, role_of, up

from cometmq.base.errors import ConfigError, UsageError
from cometmq.client import Message, SendStatus
from cometmq.client.sync import Producer as BlockingProducer
from cometmq.testing import cluster


async def test_a_lost_master_is_replaced_and_nothing_is_lost() -> None:
    async with cluster(slaves=2, controller=True) as servers:
        assert sorted(map(role_of, servers.brokers)) == ["SLAVE", "SLAVE", "SYNC_MASTER"]
        sent: list[bytes] = []
        async with producer_of(servers) as producer:

            async def send(count: int) -> None:
                for _ in range(count):
                    body = b"%d" % len(sent)
                    result = await producer.send(Message(topic="T", body=body), timeout=20)
                    assert result.status is SendStatus.SEND_OK
                    sent.append(body)

            await send(20)
            (lost,) = servers.masters
            await servers.kill(lost)
            await send(20)
            await servers.start(lost)
            assert len(servers.slaves) == 2
            await servers.promote(servers.slaves[0])
            await send(20)
        assert set(sent) <= set(await bodies_of(servers.name_servers, "T"))


async def test_the_controller_decides() -> None:
    with pytest.raises(ConfigError, match="the controller decides"):
        async with cluster(slaves=1, controller=True, settings={"brokerRole": "ASYNC_MASTER"}):
            pass
    async with cluster(slaves=1, controller=True) as servers:
        (slave,) = servers.slaves
        await servers.stop(slave)
        with pytest.raises(UsageError, match="give no role"):
            await servers.start(slave, role="SYNC_MASTER")


async def test_all_of_it_starts_again_on_its_data(tmp_path: Path) -> None:
    for number in range(2):
        async with (
            cluster(slaves=1, controller=True, data_directory=str(tmp_path)) as servers,
            producer_of(servers) as producer,
        ):
            result = await producer.send(Message(topic="T", body=b"%d" % number), timeout=20)
            assert result.status is SendStatus.SEND_OK
            wanted = [b"%d" % before for before in range(number + 1)]
            assert await bodies_of(servers.name_servers, "T") == wanted


def test_the_command(tmp_path: Path) -> None:
    options = ("--replicas", "3", "--controller", "--controller-port", "0")
    with up(tmp_path, *options, "--set", "mappedFileSizeCommitLog=1048576") as lines:
        words = [line.split() for line in lines]
        assert [line[0] for line in words[:5]] == ["name", "controller", *["broker"] * 3]
        assert sorted(line[2] for line in words[2:5]) == ["SLAVE", "SLAVE", "SYNC_MASTER"]
        with BlockingProducer("senders", name_servers=words[0][2]) as producer:
            assert producer.send(Message(topic="T", body=b"x")).status is SendStatus.SEND_OK
