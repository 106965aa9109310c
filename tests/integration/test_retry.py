"""A message that nobody can process, from its first delivery to the dead letters and back, through a real broker."""

from __future__ import annotations

from pathlib import Path

from cometmq.testing.cluster import cluster

from .raw_client import RawClient

GROUP = "Workers"
RETRY = f"%RETRY%{GROUP}"
DEAD = f"%DLQ%{GROUP}"
SETTINGS = {"messageDelayLevel": "1s 1s 1s 1s 2s"}


async def test_from_the_first_failure_to_the_dead_letters_and_back() -> None:
    async with (
        cluster(settings=SETTINGS) as servers,
        RawClient(servers.broker_address) as client,
    ):
        await client.send("Jobs", b"job", {"UNIQ_KEY": "ID-1", "TAGS": "T", "KEYS": "k"})
        (record,) = origin = await client.read("Jobs")
        for times in (1, 2):
            assert (await client.send_back(record, GROUP, maxReconsumeTimes="2")).code == 0
            record = (await client.read_until(times, RETRY))[-1]
            assert record.reconsume_times == times
            assert record.body == b"job"
            assert record.properties["UNIQ_KEY"] == "ID-1"
            assert record.properties["RETRY_TOPIC"] == "Jobs"
            assert record.properties["ORIGIN_MESSAGE_ID"] == origin[0].offset_id
            assert record.properties["DELAY"] == str(2 + times)
        assert (await client.read(DEAD)) == []
        assert (await client.send_back(record, GROUP, maxReconsumeTimes="2")).code == 0
        (letter,) = await client.read(DEAD)
        assert (letter.body, letter.reconsume_times) == (b"job", 3)
        assert letter.properties["UNIQ_KEY"] == "ID-1"
        assert letter.properties["ORIGIN_MESSAGE_ID"] == origin[0].offset_id

        # A dead letter is found by its id and by its keys, and can be sent again.
        query = {"topic": DEAD, "key": "ID-1", "maxNum": "9", "beginTimestamp": "0"}
        query |= {"endTimestamp": str(1 << 62), "_UNIQUE_KEY_QUERY": "true"}
        assert (await client.ask(12, query)).code == 0
        properties = letter.properties
        topic = properties["RETRY_TOPIC"]
        again = await client.send(topic, letter.body, {"UNIQ_KEY": properties["UNIQ_KEY"]})
        assert again.code == 0
        assert [found.body for found in await client.read("Jobs")] == [b"job", b"job"]


async def test_a_consumer_that_gives_up_sends_to_the_dead_letters_at_once() -> None:
    async with cluster() as servers, RawClient(servers.broker_address) as client:
        for topic in ("Jobs", "Tasks"):
            await client.send(topic, topic.encode(), {"UNIQ_KEY": topic})
            (record,) = await client.read(topic)
            assert (await client.send_back(record, GROUP, level=-1)).code == 0
        letters = await client.read(DEAD)
        assert [letter.properties["RETRY_TOPIC"] for letter in letters] == ["Jobs", "Tasks"]
        assert [letter.properties["UNIQ_KEY"] for letter in letters] == ["Jobs", "Tasks"]
        config = await client.ask(351, {"topic": DEAD})
        assert b'"perm":6' in bytes(config.body)


async def test_the_clients_own_way_to_a_retry_topic_ends_there_too() -> None:
    async with (
        cluster(settings=SETTINGS) as servers,
        RawClient(servers.broker_address) as client,
    ):
        text = {"UNIQ_KEY": "ID-2", "RETRY_TOPIC": "Jobs", "ORIGIN_MESSAGE_ID": "AB"}
        await client.send(RETRY, b"job", {"DELAY": "3", **text}, tries=(1, 2))
        (record,) = await client.read_until(1, RETRY)
        assert record.reconsume_times == 1
        await client.send(RETRY, b"job", {"DELAY": "4", **text}, tries=(2, 2))
        (letter,) = await client.read(DEAD)
        assert letter.properties == {
            **text,
            "DELAY": "0",
            "CLUSTER": "DefaultCluster",
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
        }


async def test_what_waits_to_be_tried_again_survives_a_restart(tmp_path: Path) -> None:
    async with (
        cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers,
        RawClient(servers.broker_address) as client,
    ):
        await client.send("Jobs", b"job", {"UNIQ_KEY": "ID-3"})
        (record,) = await client.read("Jobs")
        await client.send_back(record, GROUP)
    async with (
        cluster(settings=SETTINGS, data_directory=str(tmp_path)) as servers,
        RawClient(servers.broker_address) as client,
    ):
        (record,) = await client.read_until(1, RETRY)
        assert record.properties["UNIQ_KEY"] == "ID-3"
