"""Send messages, and measure how long that takes."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from cometmq.base.errors import CometError, UsageError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.messages.message_texts import send_text
from cometmq.cli.mqadmin.options import TOPIC, needed, value
from cometmq.client import Message
from cometmq.model.flags import is_writable
from cometmq.model.message_queue import MessageQueue

if TYPE_CHECKING:
    from cometmq.client import SendResult

_FORMAT: Final = "%-32s  %-4s  %-20s    %s"
SENT: Final = Layout(("#Broker Name", "#QID", "#Send Result", "#MsgId"), _FORMAT)
TIMES: Final = Layout(("#Broker Name", "#QID", "#Send Result", "#RT"), _FORMAT)
BROKER_TIMES: Final = Layout(
    ("#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount"),
    "%-24s  %-24s  %-4s  %-8s  %-8s",
)
AMOUNT_MAX: Final = 1_000_000


async def send_message(call: Call) -> None:
    args = call.args
    if args.truth("m", False):
        raise UsageError(
            "mqadmin writes no traces: send with a producer whose tracing is on (-m has no meaning here)"
        )
    broker, queue_id = args.text("b"), args.number("i", low=0)
    if queue_id is not None and broker is None:
        raise UsageError("a queue (-i) is one of a broker: give its name, too (-b)")
    topic = args.needed("t")
    message = Message(
        topic=topic,
        body=(args.raw("p") or "").encode(),
        tags=args.text("c"),
        keys=args.text("k", "").split(),
    )
    queue = None
    if broker is not None:
        writable = await _writable(call, topic)
        queues = [
            one
            for one in writable
            if one.broker_name == broker and queue_id in (None, one.queue_id)
        ]
        if not queues:
            there = Counter(one.broker_name for one in writable)
            known = ", ".join(f"{count} at {name}" for name, count in sorted(there.items()))
            wanted = "queue" if queue_id is None else f"queue {queue_id}"
            raise UsageError(
                f"topic {topic!r} has no {wanted} at broker {broker!r} to write to; "
                f"there are, numbered from 0: {known or 'none'}"
            )
        queue = queues[0]
    result = await call.admin.messages.send(message, queue=queue)
    row = (
        result.queue.broker_name,
        str(result.queue.queue_id),
        str(result.status),
        result.message_id,
    )
    call.out.table(SENT, [row])
    call.out.value(result)


async def _writable(call: Call, topic: str) -> list[MessageQueue]:
    route = await call.admin.topics.route(topic)
    return sorted(
        MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=number)
        for data in route.queue_datas
        if is_writable(data.perm)
        for number in range(data.write_queue_nums)
    )


async def _timed(
    call: Call, topic: str, size: int, queue: MessageQueue | None = None
) -> tuple[SendResult | CometError, int]:
    message = Message(topic=topic, body=b"a" * size)
    started = time.monotonic()
    try:
        result: SendResult | CometError = await call.admin.messages.send(message, queue=queue)
    except CometError as error:
        result = error
    return result, int((time.monotonic() - started) * 1000)


async def check_send_time(call: Call) -> None:
    topic = call.args.needed("t")
    amount, size = _amount(call, "a", 100), call.args.number("s", 128, low=1)
    queues = await _writable(call, topic)
    if not queues:
        raise UsageError(f"topic {topic!r} has no queue to write to")
    rows, times = [], []
    for number in range(amount):
        queue = queues[number % len(queues)]
        result, milliseconds = await _timed(call, topic, size, queue)
        is_sent = not isinstance(result, CometError)
        if isinstance(result, CometError):
            call.out.failure(f"{queue.broker_name}: {result}")
        times.append(milliseconds)
        sent = "true" if is_sent else "false"
        rows.append((queue.broker_name, str(queue.queue_id), sent, str(milliseconds)))
    call.out.table(TIMES, rows)
    # The first one connects.
    average = sum(times[1:]) / max(len(times) - 1, 1)
    call.out.line(f"Avg RT: {average:.2f}")
    call.out.value({"milliseconds": times, "average": average})


def _amount(call: Call, key: str, default: int) -> int:
    amount = call.args.number(key, default, low=1)
    if amount > AMOUNT_MAX:
        raise UsageError(
            f"expected at most {AMOUNT_MAX} messages for the option -{key}, got {amount}"
        )
    return amount


async def send_status(call: Call) -> None:
    from cometmq.admin import Target

    broker = call.args.needed("b")
    size, count = call.args.number("s", 128, low=1), _amount(call, "c", 50)
    # A slip in the name would make a topic, where sends may do so.
    await call.admin.brokers.places(Target(broker=broker))
    # Each broker has a topic of its own name; the first message connects.
    first, _ = await _timed(call, broker, size)
    if isinstance(first, CometError):
        raise first
    results = []
    for _ in range(count):
        result, milliseconds = await _timed(call, broker, size)
        if isinstance(result, CometError):
            call.out.failure(f"{broker}: {result}")
            continue
        call.out.line(f"rt={milliseconds}ms, SendResult={send_text(result)}")
        results.append({"milliseconds": milliseconds, "status": str(result.status)})
    call.out.value(results)


async def cluster_times(call: Call) -> None:
    args = call.args
    amount, size = _amount(call, "a", 100), args.number("s", 128, low=1)
    wanted = args.text("c")
    rows = []
    for cluster in await call.admin.clusters.all():
        if wanted not in (None, cluster.name):
            continue
        for broker in cluster.brokers:
            results = [await _timed(call, broker, size) for _ in range(amount)]
            times = [spent for result, spent in results if not isinstance(result, CometError)]
            failed = [result for result, _ in results if isinstance(result, CometError)]
            if failed:
                call.out.failure(f"{broker}: {failed[0]}")
            average = sum(times) / len(times) if times else 0.0
            rows.append((cluster.name, broker, f"{average:.2f}", str(len(times)), str(len(failed))))
    if not rows:
        raise UsageError(f"there is no cluster {wanted!r}" if wanted else "there is no broker")
    if args.truth("p", False):
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        for row in rows:
            call.out.line("|".join((stamp, args.text("m", "noname"), *row[:3])))
    else:
        call.out.table(BROKER_TIMES, rows)
    titles = ("cluster", "broker", "milliseconds", "sent", "failed")
    call.out.value([dict(zip(titles, row, strict=True)) for row in rows])


AMOUNT: Final = value("a", "amount", "number of messages (100)")
SIZE: Final = value("s", "size", "bytes of each message (128)")

COMMANDS: Final = (
    Command(
        name="sendMessage",
        summary="Send a message.",
        run=send_message,
        options=(
            TOPIC,
            needed("p", "body", "the body, as text"),
            value("k", "key", "keys, separated by blanks"),
            value("c", "tags", "the tag"),
            value("b", "broker", "name of the broker"),
            value("i", "qid", "number of the queue of that broker"),
            value("m", "msgTraceEnable", "false; mqadmin writes no traces"),
        ),
        examples=("sendMessage -t Orders -p hello -k order-17 -c paid",),
    ),
    Command(
        name="checkMsgSendRT",
        summary="Send messages to a topic and tell how long each took.",
        run=check_send_time,
        options=(TOPIC, AMOUNT, SIZE),
        examples=("checkMsgSendRT -t Orders -a 10",),
    ),
    Command(
        name="sendMsgStatus",
        summary="Send messages to a broker and show what it answers.",
        run=send_status,
        options=(
            needed("b", "brokerName", "name of the broker"),
            value("s", "messageSize", "bytes of each message (128)"),
            value("c", "count", "number of messages (50)"),
        ),
        examples=("sendMsgStatus -b broker-a -c 5",),
    ),
    Command(
        name="clusterRT",
        summary="Send messages to all brokers and tell how long it took; once, or with -i again and again.",
        run=cluster_times,
        options=(
            AMOUNT,
            SIZE,
            value("c", "cluster", "only this cluster"),
            value("i", "interval", "repeat every so many seconds, as --watch"),
            value("m", "machine room", "a name for -p (noname)"),
            value("p", "print log", "true: lines for a log (false)"),
        ),
        interval="i",
        can_watch=True,
        examples=("clusterRT -a 10", "clusterRT -a 10 -i 5"),
    ),
)
