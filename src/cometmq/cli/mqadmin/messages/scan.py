"""Messages of a topic or queue, one after the other; entries of a consume queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.messages.message_texts import (
    charset_of,
    document,
    message_line,
    queue_text,
)
from cometmq.cli.mqadmin.options import TOPIC, needed, value
from cometmq.cli.mqadmin.texts import java
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.client.core.queue_answers import Bounds
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

_RULE: Final = "-" * 56
_EDGE: Final = "=" * 38


async def print_messages(call: Call) -> None:
    args = call.args
    charset, has_body = charset_of(args.text("c", "UTF-8")), args.truth("d", True)
    queues = await call.admin.messages.ranges(
        args.needed("t"), begin_ms=args.time("b"), end_ms=args.time("e")
    )
    for queue, bounds in queues.items():
        call.out.line(f"minOffset={bounds.first}, maxOffset={bounds.end}, {queue_text(queue)}")
        async for message in _within(call, queue, bounds, args.text("s", "*"), "b", "e"):
            call.out.line(message_line(message, charset, has_body=has_body))
            call.out.value(document(message))
        call.out.line(_RULE)


async def _within(
    call: Call, queue: MessageQueue, bounds: Bounds, expression: str, begin: str, end: str
) -> AsyncIterator[ReceivedMessage]:
    """Those stored between the times that two options give: brokers know offsets of times only roughly."""
    low, high = call.args.time(begin) or 0, call.args.time(end)
    async for message in call.admin.messages.read(queue, bounds, expression):
        if low <= message.store_timestamp <= (TIME_MS_MAX if high is None else high):
            yield message


async def print_queue(call: Call) -> None:
    args = call.args
    charset, has_body = charset_of(args.text("c", "UTF-8")), args.truth("d", False)
    is_shown, is_counted = args.truth("p", False), args.truth("f", False)
    queues = await call.admin.messages.ranges(
        args.needed("t"),
        begin_ms=args.time("b"),
        end_ms=args.time("e"),
        broker=args.needed("a"),
        queue_id=args.number("i", 0, low=0),
    )
    tags: Counter[str] = Counter()
    for queue, bounds in queues.items():
        async for message in _within(call, queue, bounds, args.text("s", "*"), "b", "e"):
            if message.tags:
                tags[message.tags] += 1
            if is_shown:
                call.out.line(message_line(message, charset, has_body=has_body))
                call.out.value(document(message))
    if is_counted:
        for tag, count in tags.most_common():
            call.out.line(f"Tag: {tag:<30} Count: {count}")
        call.out.value({"tags": dict(tags)})


async def consume_messages(call: Call) -> None:
    args = call.args
    count, offset = args.number("c", 128, low=1), args.number("o", low=0)
    broker, queue_id = args.text("b"), args.number("i", low=0)
    if offset is not None and (broker is None or queue_id is None):
        raise UsageError(
            "an offset (-o) is for one queue: give its broker (-b) and number (-i), too"
        )
    if queue_id is not None and broker is None:
        raise UsageError("a queue (-i) is one of a broker: give its name, too (-b)")
    queues = await call.admin.messages.ranges(
        args.needed("t"),
        begin_ms=args.time("s"),
        end_ms=args.time("e"),
        broker=broker,
        queue_id=queue_id,
    )
    call.out.line(f"The oldler {count} message will be provided")
    for queue, bounds in queues.items():
        first = bounds.first if offset is None else max(offset, bounds.first)
        chosen = Bounds(first, min(bounds.end, first + count))
        if first >= bounds.end or not count:
            continue
        call.out.line("Consume ok")
        async for message in _within(call, queue, chosen, "*", "s", "e"):
            call.out.line(message_line(message, "utf-8", has_body=True))
            call.out.value(document(message))
            count -= 1


async def query_entries(call: Call) -> None:
    args, out = call.args, call.out
    index = args.number("i", 0, low=0)
    found = await call.admin.messages.queue_entries(
        args.needed("t"),
        args.number("q", 0, low=0),
        index,
        count=args.number("c", 10, low=1),
        address=args.text("b"),
        group=args.text("g"),
    )
    if found.subscription_data is not None:
        out.line("Subscription data: ")
        out.line(msgspec.json.encode(found.subscription_data).decode())
        out.line(_EDGE)
    if found.filter_data is not None:
        out.line("Filter data: ")
        out.line(found.filter_data)
        out.line(_EDGE)
    out.line("Queue data: ")
    out.line(f"max: {found.max_queue_index}, min: {found.min_queue_index}")
    out.line(_EDGE)
    for number, entry in enumerate(found.queue_data, start=index):
        out.line(f"idx: {number}")
        out.line(
            f"ConsumeQueueData{{physicOffset={entry.physic_offset}, physicSize={entry.physic_size}, "
            f"tagsCode={entry.tags_code}, extendDataJson='{java(entry.extend_data_json)}', "
            f"bitMap='{java(entry.bit_map)}', eval={java(entry.eval)}, msg='{java(entry.msg)}'}}"
        )
        out.line(_EDGE)
    out.value(found)


BEGIN: Final = value(
    "b", "beginTimestamp", "stored at this time or later, like 2026-05-17#20:15:00:000"
)
END: Final = value("e", "endTimestamp", "stored at this time or earlier")
CHARSET: Final = value("c", "charsetName", "character set of the bodies (UTF-8)")
EXPRESSION: Final = value("s", "subExpression", "only these tags, like 'paid || refunded'")

COMMANDS: Final = (
    Command(
        name="printMsg",
        summary="Print the messages of a topic.",
        run=print_messages,
        options=(
            TOPIC,
            CHARSET,
            EXPRESSION,
            BEGIN,
            END,
            value("d", "printBody", "false: without bodies (true)"),
            value("l", "lmqParentTopic", "only for RocketMQ's lite topics"),
        ),
        examples=("printMsg -t Orders -s paid", "printMsg -t Orders --json"),
    ),
    Command(
        name="printMsgByQueue",
        summary="Print the messages of a queue, or count them by tag.",
        run=print_queue,
        options=(
            TOPIC,
            needed("a", "brokerName", "name of the broker"),
            needed("i", "queueId", "number of the queue"),
            CHARSET,
            EXPRESSION,
            BEGIN,
            END,
            value("p", "print msg", "true: print them (false)"),
            value("d", "printBody", "true: with bodies (false)"),
            value("f", "calculate", "true: count them by tag (false)"),
        ),
        examples=("printMsgByQueue -t Orders -a broker-a -i 0 -p true -d true",),
    ),
    Command(
        name="consumeMessage",
        summary="Print the first messages of a topic or queue; no position changes.",
        run=consume_messages,
        options=(
            TOPIC,
            value("b", "brokerName", "name of a broker"),
            value("i", "queueId", "number of a queue of that broker"),
            value("o", "offset", "from this offset on"),
            value("g", "consumerGroup", "has no meaning here: nothing is consumed"),
            value("c", "MessageNumber", "at most so many (128)"),
            value("s", "beginTimestamp", "stored at this time or later"),
            value("e", "endTimestamp", "stored at this time or earlier"),
        ),
        examples=("consumeMessage -t Orders -c 10",),
    ),
    Command(
        name="queryCq",
        summary="Show entries of a consume queue as they are in its file.",
        run=query_entries,
        options=(
            TOPIC,
            needed("q", "queue", "number of the queue"),
            needed("i", "index", "offset of the first entry"),
            value("c", "count", "how many (10)"),
            value("b", "broker", "address of the broker"),
            value("g", "consumer", "tell, too, which entries this group's filter lets through"),
        ),
        examples=("queryCq -t Orders -q 0 -i 0 -c 5",),
    ),
)
