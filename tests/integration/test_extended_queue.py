"""SQL92 subscriptions with the extended consume queue: our client, real sockets, a broker that restarts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.base.errors import ConfigError
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.filters.message_filter import MessageFilter
from cometmq.client import Message, PushConsumerConfig, ReceivedMessage, Sql
from cometmq.client.aio import Producer, PushConsumer
from cometmq.model.java_hash import java_hash
from cometmq.store.queues.extended_queue import Unit
from cometmq.testing.cluster import Cluster, cluster

TOPIC = "Orders"
SETTINGS = {
    "enableConsumeQueueExt": "true",
    "enableCalcFilterBitMap": "true",
    "mappedFileSizeConsumeQueueExt": "1024",
    "defaultTopicQueueNums": "1",
}
FROM_FIRST = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
WAIT_SECONDS_MAX = 20.0


class Reader:
    """A consumer that keeps what it is given."""

    def __init__(self, group: str, servers: Cluster, wish: str | Sql) -> None:
        self.bodies: list[str] = []
        self.consumer = PushConsumer(
            group, listener=self._take, name_servers=servers.name_servers, config=FROM_FIRST
        )
        self.consumer.subscribe(TOPIC, wish)

    async def _take(self, message: ReceivedMessage) -> None:
        self.bodies.append(message.body.decode())

    async def until(self, bodies: list[str]) -> None:
        await eventually(lambda: len(self.bodies) >= len(bodies), lambda: f"got {self.bodies}")
        assert sorted(self.bodies) == sorted(bodies)


async def send(servers: Cluster, first: int, count: int) -> None:
    async with Producer("shop", name_servers=servers.name_servers) as producer:
        for number in range(first, first + count):
            await producer.send(
                Message(
                    topic=TOPIC,
                    body=str(number).encode(),
                    tags="even" if number % 2 == 0 else "odd",
                    properties={"price": str(number)},
                )
            )


def units_of(servers: Cluster) -> list[Unit | None]:
    store = servers.servers.broker.core.store
    return store.units(TOPIC, 0, 0, store.max_offset(TOPIC, 0))


class Judged:
    """Counts the records that were held against an expression while pulls were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        plain = vars(MessageFilter)["by_record"].fget

        def counting(wanted: MessageFilter) -> Callable[[memoryview], bool] | None:
            judge: Callable[[memoryview], bool] | None = plain(wanted)
            return judge and partial(self._judge, judge)

        monkeypatch.setattr(MessageFilter, "by_record", property(counting))

    def _judge(self, judge: Callable[[memoryview], bool], record: memoryview) -> bool:
        self.count += 1
        return judge(record)


async def test_each_group_gets_its_messages_and_others_are_not_even_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(monkeypatch)
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        await send(servers, 0, 10)
        cheap = Reader("cheap", servers, Sql("price < 3 OR price = 105"))
        even = Reader("even", servers, "even")
        async with cheap.consumer, even.consumer:
            await cheap.until(["0", "1", "2"])
            # The first ten were stored before there was a filter: the records had to tell.
            assert judged.count >= 10
            judged.count = 0
            await send(servers, 100, 20)
            await cheap.until(["0", "1", "2", "105"])
            await even.until([str(n) for n in (*range(0, 10, 2), *range(100, 120, 2))])
            units = units_of(servers)
            assert [unit.tags_code for unit in units if unit][:2] == [
                java_hash("even"),
                java_hash("odd"),
            ]
            assert [len(unit.bits) for unit in units if unit] == [0] * 10 + [14] * 20
            assert [n for n, unit in enumerate(units) if unit and any(unit.bits)] == [15]
            # One that it wants, and those of the filter's very first millisecond at most.
            assert judged.count < 10


async def test_filters_and_units_outlive_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(monkeypatch)
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        reader = Reader("cheap", servers, Sql("price < 3"))
        await send(servers, 50, 1)
        async with reader.consumer:
            await eventually(lambda: "cheap" in filters(servers), "a filter")
        # Nobody is there now, but the filter is kept: these are held against it, too.
        await send(servers, 0, 20)
        assert all(unit and unit.bits for unit in units_of(servers)[2:])
    judged.count = 0
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        again = Reader("cheap", servers, Sql("price < 3"))
        async with again.consumer:
            await again.until(["0", "1", "2"])
        assert judged.count < 10


def filters(servers: Cluster) -> set[str]:
    known = servers.servers.broker.core.filters
    return {group for group in ("cheap", "dear") if known.get(TOPIC, group) is not None}


async def test_a_new_expression_does_not_go_by_the_bits_of_the_old_one(tmp_path: Path) -> None:
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        await send(servers, 50, 1)
        first = Reader("cheap", servers, Sql("price > 1000"))
        async with first.consumer:
            await eventually(lambda: "cheap" in filters(servers), "a filter")
            await send(servers, 0, 10)
        second = Reader("cheap", servers, Sql("price < 3"))
        store = servers.servers.broker.core.store
        servers.servers.broker.core.offsets.commit("cheap", TOPIC, 0, 0)
        assert store.max_offset(TOPIC, 0) == 11
        async with second.consumer:
            await second.until(["0", "1", "2"])


async def test_a_lost_extension_is_made_again_with_its_bits(tmp_path: Path) -> None:
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        await send(servers, 50, 1)
        reader = Reader("cheap", servers, Sql("price < 3"))
        async with reader.consumer:
            await eventually(lambda: "cheap" in filters(servers), "a filter")
            await send(servers, 0, 40)
            await reader.until(["0", "1", "2"])
        before = units_of(servers)
        root = Path(servers.servers.broker.core.store.config.root)
    shutil.rmtree(root / "consumequeue_ext")
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        after = units_of(servers)
        assert len(after) == 41
        # The first was stored before there was a filter; by now there is one to hold it against.
        assert after[1:] == before[1:]
        assert after[0] is not None


async def test_bits_can_be_switched_on_and_off_while_running(tmp_path: Path) -> None:
    async with cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers:
        live = servers.servers.broker.live
        live.update({"enableCalcFilterBitMap": "false"})
        await send(servers, 50, 1)
        reader = Reader("cheap", servers, Sql("price < 3"))
        async with reader.consumer:
            await eventually(lambda: "cheap" in filters(servers), "a filter")
            await send(servers, 0, 5)
            await reader.until(["0", "1", "2"])
            assert not any(unit.bits for unit in units_of(servers) if unit)
            live.update({"enableCalcFilterBitMap": "true"})
            await send(servers, 1, 4)
            await reader.until(["0", "1", "2", "1", "2"])
            assert [bool(unit and unit.bits) for unit in units_of(servers)[6:]] == [True] * 4


def test_unit_files_must_take_a_unit() -> None:
    settings = {**SETTINGS, "brokerName": "b", "storePathRootDir": "/nowhere"}
    small = {"mappedFileSizeConsumeQueueExt": "64", "expectConsumerNumUseFilter": "200"}
    with pytest.raises(ConfigError, match="must be at least 108"):
        load_broker_config({**settings, **small})
    config, ignored = load_broker_config({**settings, "bitMapLengthConsumeQueueExt": "64"})
    assert config.store.queues.extended_file_bytes == 1024
    # RocketMQ's broker overwrites it with what follows from the Bloom filter.
    assert "bitMapLengthConsumeQueueExt" in ignored


def test_off_by_default(tmp_path: Path) -> None:
    config, _ = load_broker_config({"brokerName": "b", "storePathRootDir": str(tmp_path)})
    assert not config.store.queues.extended
    assert not config.filters.calculates_bits
