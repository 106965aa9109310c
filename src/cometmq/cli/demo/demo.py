"""``cometmq demo``: the main features from end to end, explained to a newcomer as they happen.

A real server process, real sockets, a real crash; the numbers printed are measured in this run.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import click

from cometmq.base.errors import CometError
from cometmq.cli.demo.demo_dashboard import demo_dashboard, show, stay
from cometmq.cli.demo.demo_pipeline import Order, run_pipeline
from cometmq.cli.server_process import ServerProcess
from cometmq.client.aio.pull.pull_consumer import PullConsumer, PullStatus
from cometmq.client.aio.send.producer import Producer, SendResult
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message, ReceivedMessage

TOPIC = "Orders"
TAGS = ("created", "paid", "shipped")
CUSTOMERS = ("ada", "bob")
DAY = datetime(2026, 5, 1, 8, tzinfo=UTC)
IN_FLIGHT_MAX = 64
BATCH = 32


class DemoFailed(CometError):
    """Something that the demo promises did not happen."""


def run(count: int, *, stays: bool = False) -> None:
    """Exit code 0 if everything shown is true, otherwise 1 with the reason.

    Args:
        stays: servers and dashboard run on at the end, until Ctrl-C.
    """
    directory = tempfile.mkdtemp(prefix="cometmq-demo-")
    try:
        asyncio.run(_demo(directory, count, stays))
    except CometError as error:
        click.echo(f"\ndemo failed: {error}", err=True)
        raise SystemExit(1) from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _demo(directory: str, count: int, stays: bool) -> None:
    _title("1. Start a cluster: a name server, which knows the routes, and a broker, which stores")
    servers = ServerProcess(directory, settings={"mappedFileSizeCommitLog": "67108864"})
    await servers.start()
    dashboard = demo_dashboard(servers.name_server)
    try:
        await dashboard.start()
        _line(f"name server {servers.name_server}, broker {servers.broker}")
        sent = await _send(servers.name_server, count)
        await _consume(servers.name_server, sent)
        await _look_up(servers.name_server, sent)
        await _wait_for_one(servers.name_server)
        _title("5. Kill the servers with SIGKILL, start them again on the same files")
        await servers.kill()
        seconds = await servers.start()
        _line(f"up again after {seconds:.2f} s, recovery included")
        await _survivors(servers.name_server, sent)
        _title(
            "6. A pipeline on Spark: what was paid by hour and customer, from the topic into a table"
        )
        paid = [_facts(n) for n in range(len(sent)) if _order(n).tags == "paid"]
        run_pipeline(servers.name_server, directory, paid, _line)
        _title("7. Look at all this: the dashboard")
        # One more than was counted: the one that a consumer waited for.
        await show(dashboard.url, TOPIC, len(sent) + 1, "demo-consumer", _line)
        if stays:
            await stay(_line)
        else:
            _line("to keep it open and look around: cometmq demo --stay")
    finally:
        await dashboard.stop()
        await servers.stop()
    click.echo("\nThat was a message queue. Run your own: cometmq up --data ./my-queue")
    click.echo("Included pipelines: cometmq pipeline list")


async def _send(name_server: str, count: int) -> dict[str, SendResult]:
    _title(f"2. Send {count} orders: each answer means the broker has it in its log")
    sent: dict[str, SendResult] = {}
    async with Producer("demo-producer", name_servers=name_server) as producer:
        gate = asyncio.Semaphore(IN_FLIGHT_MAX)

        async def send(number: int) -> None:
            async with gate:
                result = await producer.send(_order(number))
            sent[f"order-{number}"] = result

        # The first send creates the topic; the others find it.
        await send(0)
        started = time.perf_counter()
        await asyncio.gather(*(send(number) for number in range(1, count)))
        seconds = time.perf_counter() - started
        _line(f"{count} single sends, {IN_FLIGHT_MAX} at a time: {count / seconds:,.0f} per second")

        started = time.perf_counter()
        for first in range(count, 2 * count, BATCH):
            numbers = range(first, min(first + BATCH, 2 * count))
            result = await producer.send_batch([_order(number) for number in numbers])
            sent.update((f"order-{number}", result) for number in numbers)
        seconds = time.perf_counter() - started
        _line(f"{count} more in batches of {BATCH}: {count / seconds:,.0f} per second")
    one = sent["order-0"]
    _line(
        f"order-0 lies in queue {one.queue.queue_id} at offset {one.queue_offset}, id {one.offset_id}"
    )
    return sent


async def _consume(name_server: str, sent: dict[str, SendResult]) -> None:
    _title("3. Consume: read every queue from its start, then say how far we are")
    async with PullConsumer("demo-consumer", name_servers=name_server) as consumer:
        started = time.perf_counter()
        messages = await _read_all(consumer)
        seconds = time.perf_counter() - started
        _check(messages, sent)
        per_queue = Counter(message.queue_id for message in messages)
        per_tag = Counter(message.tags for message in messages)
        _line(f"{len(messages)} messages, {len(messages) / seconds:,.0f} per second, none missing")
        _line("per queue: " + ", ".join(f"{queue}: {n}" for queue, n in sorted(per_queue.items())))
        _line(
            "per tag:   " + ", ".join(f"{tag}: {n}" for tag, n in sorted(per_tag.items(), key=str))
        )
        paid = await _read_all(consumer, tags="paid")
        if len(paid) != per_tag["paid"]:
            raise DemoFailed(f"tag filter gave {len(paid)} of {per_tag['paid']} paid orders")
        _line(f"only tag 'paid', filtered at the broker: {len(paid)} messages")
        for queue in await consumer.queues(TOPIC):
            await consumer.commit(queue, await consumer.max_offset(queue))
        queue = (await consumer.queues(TOPIC))[0]
        _line(f"group demo-consumer is at offset {await consumer.committed(queue)} of queue 0")


async def _look_up(name_server: str, sent: dict[str, SendResult]) -> None:
    _title("4. Find one message again: by its key, by its id, by its time")
    async with PullConsumer("demo-consumer", name_servers=name_server) as consumer:
        by_key = await consumer.query(TOPIC, "order-7")
        if [message.body for message in by_key] != [_order(7).body]:
            raise DemoFailed(f"query by key order-7 gave {len(by_key)} messages")
        _line(f"key order-7: {by_key[0].body.decode()}")
        by_id = await consumer.view(sent["order-7"].offset_id)
        _line(f"id {sent['order-7'].offset_id}: the same, tag {by_id.tags!r}")
        queue = sent["order-7"].queue
        offset = await consumer.offset_by_time(queue, by_id.store_timestamp)
        _line(f"first message of its millisecond in queue {queue.queue_id}: offset {offset}")


async def _wait_for_one(name_server: str) -> None:
    async with (
        PullConsumer("demo-waiter", name_servers=name_server) as consumer,
        Producer("demo-producer", name_servers=name_server) as producer,
    ):
        queue = (await consumer.queues(TOPIC))[0]
        end = await consumer.max_offset(queue)
        waiting = asyncio.create_task(consumer.pull(queue, end, "late", wait_seconds=10.0))
        await asyncio.sleep(0.2)
        started = time.perf_counter()
        late = Message(topic=TOPIC, body=b"one more", tags="late")
        await producer.send(late, queue=queue)
        result = await waiting
        seconds = time.perf_counter() - started
        if result.status is not PullStatus.FOUND:
            raise DemoFailed(f"a waiting pull was answered with {result.status}")
        _line(
            f"a consumer that waits for new messages had one {seconds * 1000:.1f} ms after its send"
        )


async def _survivors(name_server: str, sent: dict[str, SendResult]) -> None:
    async with PullConsumer("demo-consumer", name_servers=name_server) as consumer:
        messages = await _read_all(consumer)
        _check([message for message in messages if message.tags != "late"], sent)
        _line(f"all {len(sent)} acknowledged orders are still there, in order, byte for byte")


async def _read_all(consumer: PullConsumer, tags: str = "*") -> list[ReceivedMessage]:
    async def read(queue: MessageQueue) -> list[ReceivedMessage]:
        messages: list[ReceivedMessage] = []
        offset, end = await consumer.min_offset(queue), await consumer.max_offset(queue)
        while offset < end:
            result = await consumer.pull(queue, offset, tags)
            messages += result.messages
            offset = result.next_offset
        return messages

    queues = await consumer.queues(TOPIC)
    return [message for part in await asyncio.gather(*map(read, queues)) for message in part]


def _check(messages: list[ReceivedMessage], sent: dict[str, SendResult]) -> None:
    found = {message.keys[0]: message for message in messages}
    if len(messages) != len(sent) or found.keys() != sent.keys():
        raise DemoFailed(f"{len(sent)} orders were acknowledged, {len(messages)} came back")
    for number, key in enumerate(f"order-{number}" for number in range(len(sent))):
        if found[key].body != _order(number).body:
            raise DemoFailed(f"{key} came back altered")


def _facts(number: int) -> Order:
    # Spread over the first four hours of a day.
    at = DAY + timedelta(minutes=number * 37 % 240)
    return Order(CUSTOMERS[number % len(CUSTOMERS)], number * 7 % 1000, at)


def _order(number: int) -> Message:
    customer, amount, at = _facts(number)
    return Message(
        topic=TOPIC,
        body=f'{{"order":{number},"customer":"{customer}","amount":{amount},"at":"{at:%FT%TZ}"}}'.encode(),
        tags=TAGS[number % len(TAGS)],
        keys=[f"order-{number}"],
    )


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _line(text: str) -> None:
    click.echo(f"   {text}")
