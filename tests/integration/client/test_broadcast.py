"""Broadcasting on real servers: everybody gets everything, positions lie in a file, failures are passed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import CreateTopic
from tests.integration.client.consuming import (
    Taken,
    config,
    consuming,
    numbered,
    queues_of,
    send,
)

from cometmq.base.errors import CorruptFile
from cometmq.client.aio.offsets.local_offsets import LocalOffsets
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

pytestmark = pytest.mark.timeout(180)

Unique = Callable[[str], str]


def _settings(directory: Path, instance_name: str, **more: Any) -> Any:
    return config(
        message_model="BROADCASTING",
        local_offset_directory=str(directory),
        client={"client_ip": "10.1.2.3", "instance_name": instance_name},
        **more,
    )


@pytest.mark.parametrize("orderly", [False, True])
async def test_everybody_gets_everything_and_goes_on_where_it_was(
    name_servers: str, create_topic: CreateTopic, unique: Unique, tmp_path: Path, orderly: bool
) -> None:
    topic, group = create_topic(), unique("group")
    await send(name_servers, topic, numbered(20))
    one, two = Taken(), Taken()

    def member(taken: Taken, name: str) -> Any:
        return consuming(
            group,
            topic,
            name_servers,
            listener=taken.listener,
            orderly=orderly,
            config=_settings(tmp_path, name),
        )

    async with member(one, "one") as consumer, member(two, "two"):
        assert len(queues_of(consumer, topic)) == 4
        await eventually(lambda: len(one.messages) >= 20 and len(two.messages) >= 20)
    assert sorted(one.bodies) == sorted(two.bodies) == sorted(numbered(20))
    path = tmp_path / "10.1.2.3@one" / group / "offsets.json"
    assert sum(int(part.split(":")[-1]) for part in _entries(path)) == 20
    await send(name_servers, topic, [b"next"])
    async with member(one, "one"):
        await eventually(lambda: len(one.messages) >= 21)
    assert one.bodies[20:] == [b"next"]


async def test_a_failed_message_is_passed_over(
    name_servers: str, create_topic: CreateTopic, unique: Unique, tmp_path: Path
) -> None:
    topic = create_topic(queues=1)
    await send(name_servers, topic, numbered(3))

    def fail(message: ReceivedMessage) -> None:
        if message.body == b"1":
            raise RuntimeError("not today")

    taken = Taken(fail)
    async with consuming(
        unique("group"),
        topic,
        name_servers,
        listener=taken.listener,
        config=_settings(tmp_path, "one"),
    ) as consumer:
        await eventually(lambda: sum(consumer.positions(topic).values()) == 3)
        assert not [queue for queue in consumer.queues if queue.topic != topic]
    assert sorted(taken.bodies) == numbered(3)


async def test_the_file_is_the_one_that_java_reads(tmp_path: Path) -> None:
    queue = MessageQueue("broker-a", 3, "T")
    store = LocalOffsets("10.1.2.3@DEFAULT", "g", str(tmp_path))
    await store.load()
    assert await store.read(queue) is None
    await store.save({queue: 17})
    await store.save({queue: 18})
    path = tmp_path / "10.1.2.3@DEFAULT" / "g" / "offsets.json"
    assert str(path) == store.path
    text = path.read_text().replace(" ", "").replace("\n", "")
    assert text == '{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:18}}'
    assert ":17}" in path.with_name("offsets.json.bak").read_text()
    # As Java writes it, over several lines.
    path.write_text(
        '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":3,\n'
        '\t\t\t"topic":"T"\n\t\t}:21\n\t}\n}'
    )
    again = LocalOffsets("10.1.2.3@DEFAULT", "g", str(tmp_path))
    await again.load()
    assert await again.read(queue) == 21


@pytest.mark.parametrize("broken", ["", "{", '{"offsetTable":5}'])
async def test_a_broken_file_is_replaced_by_its_backup_or_refused(
    tmp_path: Path, broken: str
) -> None:
    queue = MessageQueue("broker-a", 3, "T")
    store = LocalOffsets("c", "g", str(tmp_path))
    await store.save({queue: 17})
    await store.save({queue: 18})
    Path(store.path).write_text(broken)
    again = LocalOffsets("c", "g", str(tmp_path))
    await again.load()
    assert await again.read(queue) == 17
    Path(store.path + ".bak").write_text(broken)
    with pytest.raises(CorruptFile, match="Remove it"):
        await LocalOffsets("c", "g", str(tmp_path)).load()


async def test_a_consumer_does_not_start_over_a_broken_file(
    name_servers: str, unique: Unique, tmp_path: Path
) -> None:
    group = unique("group")
    path = tmp_path / "10.1.2.3@one" / group / "offsets.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    consumer = PushConsumer(
        group,
        listener=Taken().listener,
        name_servers=name_servers,
        config=_settings(tmp_path, "one"),
    )
    with pytest.raises(CorruptFile):
        await consumer.start()
    path.unlink()
    async with consumer:
        pass


def _entries(path: Path) -> list[str]:
    """The texts ``{queue}:offset`` of a file whose keys are objects, which no JSON reader takes."""
    text = "".join(path.read_text().split())
    assert text.startswith('{"offsetTable":{')
    assert text.endswith("}}")
    inner = text.removeprefix('{"offsetTable":{').removesuffix("}}")
    entries = inner.split(",{")
    for entry in entries:
        json.loads(("" if entry.startswith("{") else "{") + entry.rpartition(":")[0])
    return entries
