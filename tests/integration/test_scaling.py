"""Brokers and queues come and go while producers send and consumers consume: nothing is lost, no send fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.client import ReceivedMessage
from cometmq.client.aio import PushConsumer

from .scaling_cluster import ROUTE_SECONDS, TOPIC, Growing, Load

pytestmark = pytest.mark.timeout(180)


async def _settle() -> None:
    """Every client has asked for routes again, whatever it knew before."""
    await asyncio.sleep(3 * ROUTE_SECONDS)


async def _finish(load: Load) -> None:
    """All that was sent is consumed, each message once, and no send failed."""
    await eventually(lambda: len(load.sent) > 100, "enough is sent")
    await load.stop_sending()
    await eventually(load.is_all_taken, "everything consumed")
    assert load.failures == []
    assert set(load.taken.values()) == {1}, "a message came twice"
    assert len(load.taken) == len(load.sent) > 100


async def _ignore(message: ReceivedMessage) -> None: ...


def _uses(load: Load, *brokers: str) -> bool:
    return {broker for broker, _ in load.recent()} == set(brokers)


def _is_read(load: Load, *brokers: str) -> bool:
    return {broker for broker, _ in load.taken_from} >= set(brokers)


async def test_a_broker_is_added_and_another_one_drained(tmp_path: Path) -> None:
    async with Growing(tmp_path) as servers:
        await servers.start("a")
        await servers.update_topic("a", read=4, write=4)
        async with Load(servers.name_servers) as load:
            await eventually(lambda: _uses(load, "a") and _is_read(load, "a"), "work goes on")

            await servers.start("b")
            await _settle()
            assert _uses(load, "a"), "a broker without the topic gets nothing of it"
            await servers.update_topic("b", read=4, write=4)
            await eventually(lambda: _uses(load, "a", "b"), "producers send to the new broker")
            await eventually(lambda: _is_read(load, "a", "b"), "consumers read the new broker")

            assert await servers.wipe_write_perm("a") > 0
            await eventually(lambda: _uses(load, "b"), "producers leave the broker")
            await _settle()
            load.forget_places()
            await eventually(lambda: servers.is_drained("a"), "the broker is drained")
            assert load.queues_of("a") == [0, 1, 2, 3], "it is read until it is stopped"
            await servers.stop("a")
            await eventually(lambda: load.queues_of("b") == [0, 1, 2, 3], "its queues are given up")
            await eventually(lambda: len(load.places) > 100, "work goes on without it")
            assert {broker for broker, _ in load.places} == {"b"}

            await servers.start("a")
            await eventually(lambda: _uses(load, "a", "b"), "a broker that is back is used again")
            await _finish(load)


@pytest.mark.parametrize("way", ["name server", "broker"])
async def test_a_broker_is_closed_to_producers_and_opened_again(tmp_path: Path, way: str) -> None:
    async with Growing(tmp_path) as servers:
        for name in ("a", "b"):
            await servers.start(name)
            await servers.update_topic(name, read=2, write=2)
        async with Load(servers.name_servers) as load:
            await eventually(lambda: _uses(load, "a", "b"), "both are used")
            if way == "name server":
                await servers.wipe_write_perm("b")
            else:
                await servers.update_config("b", "brokerPermission=4")
            await eventually(lambda: _uses(load, "a"), "one is used")
            # A new topic, such as a new group makes, is told to the name server. It changes nothing for the others.
            newcomer = PushConsumer(
                "newcomers", listener=_ignore, name_servers=servers.name_servers
            )
            newcomer.subscribe(TOPIC)
            async with newcomer:
                await _settle()
            assert _uses(load, "a")
            if way == "name server":
                assert await servers.add_write_perm("b") > 0
            else:
                await servers.update_config("b", "brokerPermission=6")
            await eventually(lambda: _uses(load, "a", "b"), "both are used again")
            await _finish(load)


async def test_a_topic_gets_more_queues_and_fewer(tmp_path: Path) -> None:
    async with Growing(tmp_path) as servers:
        await servers.start("a")
        await servers.update_topic("a", read=2, write=2)
        async with Load(servers.name_servers) as load:
            await eventually(lambda: load.recent() == {("a", 0), ("a", 1)}, "two queues")

            await servers.update_topic("a", read=6, write=6)
            six = {("a", queue_id) for queue_id in range(6)}
            await eventually(lambda: load.recent() == six, "producers use six queues")
            await eventually(lambda: load.taken_from.keys() >= six, "consumers read six queues")

            # First nobody writes to them, then they are empty, and only then nobody reads them.
            await servers.update_topic("a", read=6, write=1)
            await eventually(lambda: load.recent() == {("a", 0)}, "producers use one queue")
            assert load.queues_of("a") == [0, 1, 2, 3, 4, 5]
            await _settle()
            await eventually(lambda: servers.is_read("a", range(1, 6)), "the others are drained")
            await servers.update_topic("a", read=1, write=1)
            await eventually(lambda: load.queues_of("a") == [0], "consumers read one queue")

            await servers.update_topic("a", read=3, write=3)
            await eventually(lambda: len(load.recent()) == 3, "producers use three queues")
            await _finish(load)


async def test_queues_that_nobody_reads_keep_their_messages(tmp_path: Path) -> None:
    """The mistake: reading stops first. What was in the queues comes when they are readable again."""
    async with Growing(tmp_path) as servers:
        await servers.start("a")
        await servers.update_topic("a", read=4, write=4)
        async with Load(servers.name_servers) as load:
            await eventually(lambda: len(load.recent()) == 4, "four queues")
            await servers.update_topic("a", read=1, write=4)
            await eventually(lambda: load.queues_of("a") == [0], "consumers read one queue")
            sent = len(load.sent)
            await eventually(lambda: len(load.sent) > sent + 100, "producers use all queues")
            await load.stop_sending()
            assert not load.is_all_taken()
            await servers.update_topic("a", read=4, write=4)
            await _finish(load)
