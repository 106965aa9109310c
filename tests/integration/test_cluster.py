"""``cometmq.testing.cluster``: the embedded servers, as a user of a test sees them."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from cometmq.base.errors import ConfigError
from cometmq.client.aio.pull.pull_consumer import PullConsumer, PullStatus
from cometmq.client.aio.send.producer import Producer, SendStatus
from cometmq.model.messages.message import Message, ReceivedMessage
from cometmq.testing import ServersLeaked, cluster


async def _read_topic(name_servers: str, topic: str, tags: str = "*") -> list[ReceivedMessage]:
    messages: list[ReceivedMessage] = []
    async with PullConsumer("readers", name_servers=name_servers) as consumer:
        for queue in await consumer.queues(topic):
            offset, end = await consumer.min_offset(queue), await consumer.max_offset(queue)
            while offset < end:
                result = await consumer.pull(queue, offset, tags)
                messages += result.messages
                offset = result.next_offset
    return messages


async def test_send_and_read_on_the_tests_own_loop() -> None:
    async with cluster() as servers:
        async with Producer("senders", name_servers=servers.name_servers) as producer:
            sent = await producer.send(
                Message(
                    topic="Orders",
                    body="bezahlt: 17 €".encode(),
                    tags="paid",
                    keys=["o-17", "schlüssel"],
                    properties={"ключ": "值😀"},
                    flag=7,
                )
            )
        assert sent.status is SendStatus.SEND_OK
        [message] = await _read_topic(servers.name_servers, "Orders")
        assert message.body.decode() == "bezahlt: 17 €"
        assert message.tags == "paid"
        assert message.keys == ["o-17", "schlüssel"]
        assert message.properties["ключ"] == "值😀"
        assert message.flag == 7
        assert message.message_id == sent.message_id
        assert message.offset_id == sent.offset_id
        assert message.queue_offset == sent.queue_offset


def test_the_blocking_form_runs_in_a_thread_of_its_own() -> None:
    threads = threading.active_count()
    with cluster() as servers:

        async def main() -> None:
            async with Producer("senders", name_servers=servers.name_servers) as producer:
                await producer.send(Message(topic="T", body=b"x"))

        asyncio.run(main())
    assert threading.active_count() == threads


async def test_tag_filter_is_applied_at_the_broker() -> None:
    async with cluster() as servers:
        async with Producer("senders", name_servers=servers.name_servers) as producer:
            for number in range(30):
                tag = ("a", "b", "c")[number % 3]
                await producer.send(Message(topic="T", body=b"%d" % number, tags=tag))
        messages = await _read_topic(servers.name_servers, "T", tags="a || c")
        numbers = sorted(int(message.body) for message in messages)
        assert numbers == [number for number in range(30) if number % 3 != 1]


async def test_data_survives_a_restart_on_the_same_directory(tmp_path: Path) -> None:
    async with cluster(data_directory=str(tmp_path)) as servers:
        async with Producer("senders", name_servers=servers.name_servers) as producer:
            result = await producer.send_batch(
                [Message(topic="T", body=b"%d" % number) for number in range(10)]
            )
        async with PullConsumer("readers", name_servers=servers.name_servers) as consumer:
            await consumer.commit(result.queue, 4)
    async with (
        cluster(data_directory=str(tmp_path)) as servers,
        PullConsumer("readers", name_servers=servers.name_servers) as consumer,
    ):
        committed = [await consumer.committed(queue) for queue in await consumer.queues("T")]
        assert 4 in committed
        messages = await _read_topic(servers.name_servers, "T")
        assert [message.body for message in messages] == [b"%d" % n for n in range(10)]
        assert {message.broker_name for message in messages} == {result.queue.broker_name}


async def test_a_waiting_pull_is_answered_by_the_next_message() -> None:
    async with (
        cluster() as servers,
        Producer("senders", name_servers=servers.name_servers) as producer,
        PullConsumer("readers", name_servers=servers.name_servers) as consumer,
    ):
        first = await producer.send(Message(topic="T", body=b"first", tags="other"))
        waiting = asyncio.create_task(
            consumer.pull(first.queue, first.queue_offset + 1, "mine", wait_seconds=20)
        )
        await asyncio.sleep(0.1)
        await producer.send(Message(topic="T", body=b"no", tags="other"), queue=first.queue)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        started = time.perf_counter()
        await producer.send(Message(topic="T", body=b"yes", tags="mine"), queue=first.queue)
        result = await waiting
        assert result.status is PullStatus.FOUND
        assert [message.body for message in result.messages] == [b"yes"]
        # By the message, not because its own time was over.
        assert time.perf_counter() - started < 10


def test_a_setting_that_nobody_knows_is_refused() -> None:
    with (
        pytest.raises(ConfigError, match="autoCreateTopicEnable"),
        cluster(settings={"autoCreateTopicEnabel": "true"}),
    ):
        pass


async def test_leftovers_are_reported() -> None:
    stragglers: list[asyncio.Task[None]] = []

    async def leave_one() -> None:
        async with cluster():
            stragglers.append(asyncio.create_task(asyncio.sleep(60), name="straggler"))

    with pytest.raises(ServersLeaked, match="straggler"):
        await leave_one()
    stragglers[0].cancel()


def test_threads_of_the_test_itself_are_none_of_ours() -> None:
    is_over = threading.Event()
    own = threading.Thread(target=is_over.wait)
    with cluster():
        own.start()
    is_over.set()
    own.join()


def test_a_thread_of_ours_that_goes_on_is_reported() -> None:
    is_over = threading.Event()
    ours = threading.Thread(target=is_over.wait, name="cometmq-forgotten")
    with pytest.raises(ServersLeaked, match="cometmq-forgotten"), cluster():
        ours.start()
    is_over.set()
    ours.join()
