"""A shop on a real cluster, as the browser tests and the pictures of the documentation show it.

Orders and payments come in all the time. Group ``billing`` has stopped, so that orders wait; ``mailer`` hangs in its
listener; ``shipping`` gives up on what is out of stock; ``analytics`` is up to date. Some reminders are not due yet,
and one transaction is open.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from tests.eventually import wait_until

from cometmq.admin import Admin, Target, new_topic
from cometmq.admin.pipeline_report import FAILED, NAMESPACE, RUNNING, PipelineReport
from cometmq.client import (
    Message,
    Outcome,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
    TraceConfig,
)
from cometmq.client.sync import Producer, PushConsumer, TransactionProducer, TransactionState
from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster

CLUSTER: Final = "DefaultCluster"
TOPICS: Final = ("Orders", "Payments", "Refunds", "Reminders", "Clicks")
ORDERS_BEFORE: Final = 40
"""Billed before the consumers of ``billing`` stopped."""
ORDERS_AFTER: Final = 160
LOST_ORDER: Final = "order-1017"
"""What a customer asks for: shipping gave up on it."""
OUT_OF_STOCK: Final = 17
CLICK_SECONDS: Final = 0.1
HOUR_SECONDS: Final = 3600

_TRACE = TraceConfig(is_trace_on=True, flush_interval_ms=50)
_FROM_START = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET", trace=_TRACE)
_SETTINGS = {"traceTopicEnable": "true", "transactionCheckInterval": "20000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    servers: Cluster
    name_servers: str
    lost_id: str
    """The id of the message about ``LOST_ORDER``."""


@contextmanager
def shop() -> Iterator[Shop]:
    with ExitStack() as stack:
        servers = stack.enter_context(cluster(masters=2, slaves=1, settings=_SETTINGS))
        name_servers = servers.name_servers
        servers.run(_prepare(name_servers))
        producer = stack.enter_context(
            Producer("shop", name_servers=name_servers, config=ProducerConfig(trace=_TRACE))
        )
        _bill(producer, name_servers)
        for number in range(ORDERS_BEFORE, ORDERS_BEFORE + ORDERS_AFTER):
            producer.send(_order(number))
        stack.enter_context(_consumers(name_servers))
        _wait_and_open(producer, name_servers, stack)
        stack.enter_context(_clicks(producer))
        yield Shop(servers=servers, name_servers=name_servers, lost_id=_id_of(producer, LOST_ORDER))


async def _prepare(name_servers: str) -> None:
    async with Admin(name_servers) as admin:
        for report in _pipelines(int(time.time() * 1000)):
            told = await admin.kv.put(NAMESPACE, report.name, report.encode())
            told.raise_failed(f"reporting {report.name}")
        for name in TOPICS:
            done = await admin.topics.create(
                new_topic(name, read_queues=4, write_queues=4), Target(cluster=CLUSTER)
            )
            done.raise_failed(f"creating {name}")


def _pipelines(now_ms: int) -> list[PipelineReport]:
    """What two pipelines on Spark would have reported; none runs here."""
    running = PipelineReport(
        name="paid-orders",
        state=RUNNING,
        topics=["Orders"],
        lag=12,
        rows_read=18_400,
        rows_per_second=31.5,
        started_ms=now_ms - 600_000,
        # It reports no more, and must not fall silent while the tests run.
        reported_ms=now_ms + HOUR_SECONDS * 1000,
    )
    failed = PipelineReport(
        name="archive",
        state=FAILED,
        topics=["Payments"],
        lag=4_100,
        rows_read=0,
        rows_per_second=0.0,
        started_ms=now_ms - 900_000,
        reported_ms=now_ms - 840_000,
        last_error="OSError: [Errno 28] No space left on device: 'archive/part-17.parquet'",
    )
    return [running, failed]


def _order(number: int) -> Message:
    order = f"order-{1000 + number}"
    amount = round(19.9 + number * 3.35, 2)
    body = {
        "order": order,
        "customer": ("ada", "bob", "李雷")[number % 3],
        "amount": amount,
        "items": [{"sku": f"A-{number % 40}", "count": 1 + number % 3}],
        "card": "4111 1111 1111 1111",
    }
    return Message(
        topic="Orders",
        body=json.dumps(body, ensure_ascii=False).encode(),
        tags=("paid", "created")[number % 2],
        keys=[order],
        properties={"region": ("eu", "us")[number % 2], "amount": str(int(amount))},
    )


def _bill(producer: Producer, name_servers: str) -> None:
    """The first orders are billed; then nobody does it any more."""
    billed: list[str] = []

    def bill(message: ReceivedMessage) -> None:
        billed.append(message.message_id)

    billing = PushConsumer("billing", listener=bill, name_servers=name_servers, config=_FROM_START)
    billing.subscribe("Orders")
    with billing:
        for number in range(ORDERS_BEFORE):
            producer.send(_order(number))
        wait_until(lambda: len(billed) >= ORDERS_BEFORE, "the first orders to be billed")


@contextmanager
def _consumers(name_servers: str) -> Iterator[None]:
    is_over = threading.Event()

    def ship(message: ReceivedMessage) -> Outcome | None:
        sku = json.loads(message.body)["items"][0]["sku"]
        return Outcome.to_dlq() if sku == f"A-{OUT_OF_STOCK}" else None

    def remind(message: ReceivedMessage) -> None:
        is_over.wait()

    def count(message: ReceivedMessage) -> None:
        return None

    shipping = PushConsumer(
        "shipping", listener=ship, name_servers=name_servers, config=_FROM_START
    )
    shipping.subscribe("Orders")
    mailer = PushConsumer("mailer", listener=remind, name_servers=name_servers, config=_FROM_START)
    mailer.subscribe("Reminders")
    analytics = PushConsumer(
        "analytics", listener=count, name_servers=name_servers, config=_FROM_START
    )
    for topic in ("Orders", "Payments", "Clicks"):
        analytics.subscribe(topic)
    with shipping, mailer, analytics:
        try:
            yield
        finally:
            # A consumer closes when its listeners have returned.
            is_over.set()


def _wait_and_open(producer: Producer, name_servers: str, stack: ExitStack) -> None:
    """Messages that wait: for their time, or for their producer."""
    for number in range(6):
        body = f"Your parcel {number} arrives tomorrow".encode()
        producer.send(Message(topic="Reminders", body=body, keys=[f"reminder-{number}"]))
        late = Message(
            topic="Reminders",
            body=body,
            keys=[f"later-{number}"],
            delay_seconds=HOUR_SECONDS * (number + 1),
        )
        producer.send(late)
    transactions = stack.enter_context(
        TransactionProducer(
            "refunding",
            execute=lambda message, argument: TransactionState.UNKNOWN,
            check=lambda message: TransactionState.UNKNOWN,
            name_servers=name_servers,
        )
    )
    transactions.send_transaction(
        Message(topic="Refunds", body=b'{"refund": 12.5}', keys=["refund-1"])
    )


@contextmanager
def _clicks(producer: Producer) -> Iterator[None]:
    """Something that goes on all the time, so that rates and trends have something to show."""
    is_over = threading.Event()

    def click() -> None:
        number = 0
        while not is_over.wait(CLICK_SECONDS):
            number += 1
            body = json.dumps({"page": f"/offers/{number % 7}"}).encode()
            producer.send(Message(topic="Clicks", body=body, keys=[f"click-{number}"]))
            if number % 3 == 0:
                producer.send(Message(topic="Payments", body=b'{"paid": true}', tags="card"))

    thread = threading.Thread(target=click, name="shop-clicks")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _id_of(producer: Producer, key: str) -> str:
    found = wait_until(lambda: producer.query("Orders", key), f"{key} to be found by its key")
    return found[0].message_id
