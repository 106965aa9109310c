"""One visit to a running broker: check everything that the book promises, add to it, leave something half done.

It speaks through our own client, which is fast and treats every make of broker alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self

from tests.eventually import eventually

from cometmq.base.errors import CometError, RemoteProtocolError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message, ReceivedMessage
from cometmq.protocol.fastjson import loads
from cometmq.remoting.client import RemotingClient

from . import patience
from .admin_calls import create_group, create_topic
from .store_exchange_book import Book
from .systems import Broker

GROUPS = ("exchange-readers", "exchange-others")
QUEUES = {"exchange-orders": 4, "exchange-events": 2}

MESSAGES_PER_QUEUE = 40
BATCH_MESSAGES = 8
KILL_AFTER = 60
"""This many confirmed sends, and the broker is killed under the next ones."""

ENTRIES_PER_FILE = 50
INDEX_ENTRIES_PER_FILE = 400
"""So few that queues and index go over several files."""

IN_FLIGHT = 16
WAIT_SECONDS_MAX = 60.0
POLL_SECONDS = 0.02


class Visit:
    """``async with Visit(broker, name_server, book, number) as visit``; the number makes this visit's words unique."""

    def __init__(self, broker: Broker, name_server: str, book: Book, number: int) -> None:
        self._broker = broker
        self._book = book
        self._number = number
        self._remoting = RemotingClient()
        self._producer = Producer("exchange-writers", name_servers=name_server)
        self._consumers = {group: PullConsumer(group, name_servers=name_server) for group in GROUPS}
        self._reader = self._consumers[GROUPS[0]]

    async def __aenter__(self) -> Self:
        await self._producer.start()
        for consumer in self._consumers.values():
            await consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.close()
        for consumer in self._consumers.values():
            await consumer.close()
        await self._remoting.close()

    async def check(self, *, is_time_exact: bool, is_index_kept: bool) -> None:
        """Everything in the book is served: by offset, by id, by key, by time; and the groups' positions.

        Args:
            is_time_exact: a search by time gives the first message of its millisecond. RocketMQ 4.9 gives any of it.
            is_index_kept: every message has its keys. RocketMQ's recovery after a kill drops the index file in use
                and indexes again only what it scans, which may begin later.
        """
        queues = await self._all_queues(self._book.topics())
        found = {queue: await self._read(queue) for queue in queues}
        self._book.settle(found)
        every = [message for messages in found.values() for message in messages]
        await _each(every, self._check_id)
        await self._check_keys(every, is_index_kept=is_index_kept)
        for queue in queues:
            await self._check_times(queue, found[queue], is_time_exact=is_time_exact)
        for (group, queue), position in self._book.positions.items():
            assert await self._consumers[group].committed(queue) == position, (group, queue)

    async def add(self, *, moves_groups: bool) -> None:
        """New messages in the old topics and in a new one; the groups move on."""
        topics = dict(QUEUES) if self._number == 0 else {}
        topics[f"exchange-visit-{self._number}"] = 1
        if self._number == 0:
            for group in GROUPS:
                await create_group(self._remoting, self._broker.address, group)
        for topic, count in topics.items():
            await self._create_topic(topic, count)
        queues = await self._all_queues(self._book.topics() | topics)
        for queue in queues:
            self._book.messages.setdefault(queue, [])
        messages = [(queue, number) for queue in queues for number in range(MESSAGES_PER_QUEUE)]
        await _each(messages, self._send)
        for queue in queues:
            batch = [self._message(queue, f"batch-{number}") for number in range(BATCH_MESSAGES)]
            await patience.send(self._producer, batch, queue)
        for queue in queues:
            await self._enter(queue)
        if moves_groups:
            await self._move_positions(queues)

    async def positions_are_on_disk(self) -> None:
        """Returns when the groups' positions would survive a kill; brokers write them from time to time."""
        file = self._broker.store / "config" / "consumerOffset.json"
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not self._positions_in(file.read_bytes() if file.exists() else b""):
            assert time.monotonic() < deadline, f"positions are not in {file}"
            await asyncio.sleep(POLL_SECONDS)

    async def kill_while_sending(self) -> None:
        """Kills the broker in the middle of sends; those it confirmed are promised from now on."""
        unconfirmed = self._book.unconfirmed
        queues = await self._all_queues(QUEUES)
        is_killed = asyncio.Event()

        async def send_on(worker: int) -> None:
            number = 0
            while not is_killed.is_set():
                queue = queues[(worker + number) % len(queues)]
                message = self._message(queue, f"kill-{worker}-{number}")
                number += 1
                unconfirmed.bodies.add(message.body)
                try:
                    sent = await patience.send(self._producer, message, queue)
                except CometError:
                    return
                unconfirmed.confirmed[message.body] = sent
                if len(unconfirmed.confirmed) == KILL_AFTER:
                    self._broker.kill()
                    is_killed.set()

        await asyncio.gather(*(send_on(worker) for worker in range(IN_FLIGHT)))
        assert is_killed.is_set(), f"sends failed before the kill; {len(unconfirmed.confirmed)} ok"

    def _message(self, queue: MessageQueue, word: str) -> Message:
        name = f"{self._number}-{queue.topic}-{queue.queue_id}-{word}"
        # Of different lengths, so that records end at different distances from the end of a file.
        body = f"{name} ".encode() * (1 + hash_of(name) % 12)
        if word.endswith("7"):
            body = f"{name} long ".encode() * 300
        return Message(
            topic=queue.topic,
            body=body,
            tags=f"tag{hash_of(name) % 3}",
            keys=[f"key-{name}", f"shared-{self._number}"],
            properties={"имя": f"значение {name} 😀"},
            flag=hash_of(name) % 5,
        )

    async def _send(self, work: tuple[MessageQueue, int]) -> None:
        queue, number = work
        await patience.send(self._producer, self._message(queue, str(number)), queue)

    async def _enter(self, queue: MessageQueue) -> None:
        """Writes into the book what the broker that took the new messages says of them."""
        known = self._book.messages[queue]
        count = len(known) + MESSAGES_PER_QUEUE + BATCH_MESSAGES

        async def is_readable() -> bool:
            # RocketMQ's queues follow its log with a delay.
            return await self._reader.max_offset(queue) == count

        await eventually(is_readable, f"{queue} has {count} messages", WAIT_SECONDS_MAX)
        messages = await self._read(queue)
        assert messages[: len(known)] == known
        words = [str(number) for number in range(MESSAGES_PER_QUEUE)]
        words += [f"batch-{number}" for number in range(BATCH_MESSAGES)]
        sent = sorted(self._message(queue, word).body for word in words)
        assert sorted(message.body for message in messages[len(known) :]) == sent
        self._book.messages[queue] = messages

    async def _move_positions(self, queues: Iterable[MessageQueue]) -> None:
        for index, (group, consumer) in enumerate(self._consumers.items()):
            for queue in queues:
                position = len(self._book.messages[queue]) - index - queue.queue_id
                await consumer.commit(queue, position)
                self._book.positions[group, queue] = position

    def _positions_in(self, content: bytes) -> bool:
        try:
            table: dict[str, Any] = loads(content)["offsetTable"]
        except (RemoteProtocolError, KeyError, TypeError):
            return False  # Not there yet, or being written at this moment.
        return all(
            table.get(f"{queue.topic}@{group}", {}).get(str(queue.queue_id)) == position
            for (group, queue), position in self._book.positions.items()
        )

    async def _read(self, queue: MessageQueue) -> list[ReceivedMessage]:
        messages: list[ReceivedMessage] = []
        end = await self._reader.max_offset(queue)
        offset = await self._reader.min_offset(queue)
        while offset < end:
            result = await self._reader.pull(queue, offset)
            assert result.next_offset > offset, f"{queue} at {offset}: {result.status}"
            messages += result.messages
            offset = result.next_offset
        assert [message.queue_offset for message in messages] == list(range(end)), queue
        return messages

    async def _check_id(self, message: ReceivedMessage) -> None:
        seen = await self._reader.view(message.offset_id)
        seen.broker_name = message.broker_name
        assert seen == message

    async def _check_keys(self, messages: list[ReceivedMessage], *, is_index_kept: bool) -> None:
        lost: set[str] = set()

        async def check(message: ReceivedMessage) -> None:
            for key in (message.keys[0], message.message_id):
                found = await self._reader.query(message.topic, key)
                if not found and not is_index_kept:
                    lost.add(message.offset_id)
                    continue
                # An index that was made again after a crash may name a message twice.
                assert {each.offset_id for each in found} == {message.offset_id}, key
                assert found[0] == message

        await _each(
            [each for each in messages if each.offset_id not in self._book.unindexed], check
        )
        assert len(lost) <= INDEX_ENTRIES_PER_FILE
        self._book.unindexed |= lost

    async def _check_times(
        self, queue: MessageQueue, messages: list[ReceivedMessage], *, is_time_exact: bool
    ) -> None:
        first_at: dict[int, int] = {}
        for message in messages:
            first_at.setdefault(message.store_timestamp, message.queue_offset)

        async def check(moment: int) -> None:
            offset = await self._reader.offset_by_time(queue, moment)
            if is_time_exact:
                assert offset == first_at[moment], (queue, moment)
            else:
                # It chooses the file by its time of change, and that is later than a broker's own time for the last
                # entry: then the answer is the end of the file before. Nothing is skipped.
                is_end_of_file = (offset + 1) % ENTRIES_PER_FILE == 0 and offset < first_at[moment]
                assert messages[offset].store_timestamp == moment or is_end_of_file, (queue, moment)

        await _each(first_at, check)

    async def _all_queues(self, topics: dict[str, int]) -> list[MessageQueue]:
        queues: list[MessageQueue] = []
        for topic, count in topics.items():
            there = await self._reader.queues(topic)
            assert len(there) == count, there
            queues += there
        return queues

    async def _create_topic(self, topic: str, queues: int) -> None:
        await create_topic(self._remoting, self._broker.address, topic, queues)

        async def is_known() -> bool:
            try:
                await self._reader.queues(topic)
            except CometError:
                return False
            return True

        await eventually(is_known, f"the name server knows {topic}", WAIT_SECONDS_MAX)


def hash_of(word: str) -> int:
    """The same in every process, unlike Python's own."""
    return sum(word.encode()) * 31 % 1009


async def _each(items: Iterable[Any], work: Callable[[Any], Awaitable[None]]) -> None:
    """Works on all items, some at a time."""
    todo = iter(items)

    async def take_on() -> None:
        for item in todo:
            await work(item)

    await asyncio.gather(*(take_on() for _ in range(IN_FLIGHT)))
