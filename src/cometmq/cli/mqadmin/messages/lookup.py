"""Messages by id, key and offset, and what became of them."""

from __future__ import annotations

from typing import Final

from cometmq.base.errors import CometError, UsageError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.messages.body_files import save_body
from cometmq.cli.mqadmin.messages.message_texts import (
    body_line,
    charset_of,
    detail_lines,
    document,
    documents,
    send_text,
)
from cometmq.cli.mqadmin.options import ROUTE_CLUSTER, TOPIC, flag, needed, value
from cometmq.cli.mqadmin.texts import java
from cometmq.client import Message
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import RESERVED
from cometmq.model.messages.received_message import ReceivedMessage

SHOWN_MAX: Final = 32
COUNT_MAX: Final = 64

FOUND: Final = Layout(("#Message ID", "#QID", "#Offset"), "%-50s %4s %40s", "%-50s %4s %40s")


async def by_id(call: Call) -> None:
    args = call.args
    topic, group, client = args.text("t"), args.text("g"), args.text("d")
    is_resend = args.truth("s", False)
    documents_found = []
    for message_id in args.names("i"):
        message = await call.admin.messages.by_id(message_id, topic)
        if client:
            await _consume_directly(call, message, group, client)
        elif is_resend:
            await _resend(call, message, group)
        else:
            await show_message(call, message, charset=args.text("f"))
            documents_found.append(document(message))
    if documents_found:
        call.out.value(documents_found)


async def _consume_directly(
    call: Call, message: ReceivedMessage, group: str | None, client: str
) -> None:
    if group is None:
        raise UsageError("a client (-d) consumes for a group: give it, too (-g)")
    result = await call.admin.messages.consume_directly(message, group, client)
    call.out.line(
        f"ConsumeMessageDirectlyResult [order={java(result.order)}, autoCommit={java(result.auto_commit)}, "
        f"consumeResult={java(result.consume_result)}, remark={java(result.remark)}, "
        f"spentTimeMills={result.spent_time_mills}]"
    )
    call.out.value(result)


async def _resend(call: Call, message: ReceivedMessage, group: str | None) -> None:
    """To one group if there is one (-g); else, as RocketMQ's tool does, into the topic, for all of its groups."""
    call.out.line(f"prepare resend msg. originalMsgId={message.message_id}")
    if group is not None:
        result = await call.admin.messages.resend(message, group)
    else:
        properties = {
            name: text for name, text in message.properties.items() if name not in RESERVED
        }
        again = Message(
            topic=message.topic,
            body=message.body,
            tags=message.tags,
            keys=message.keys,
            properties=properties,
        )
        result = await call.admin.messages.send(again)
    call.out.line(send_text(result))
    call.out.value(result)


async def show_message(
    call: Call, message: ReceivedMessage, *, has_offset_id: bool = True, charset: str | None = None
) -> None:
    """All about a message, its body in a file, and what became of it in each group."""
    out = call.out
    if out.is_json:
        return
    for line in detail_lines(message, body_path=save_body(message), offset_id=has_offset_id):
        out.line(line)
    if charset is not None:
        out.line(body_line(message, charset_of(charset)))
    out.line()
    out.line()
    try:
        tracks = await call.admin.messages.tracks(message)
    except CometError as error:
        out.failure(f"what became of message {message.message_id} is not known: {error}")
        return
    for track in tracks:
        out.line(
            f"MessageTrack [consumerGroup={track.group}, trackType={track.track_type}, "
            f"exceptionDesc={track.reason or 'null'}]"
        )
    if not tracks:
        out.line("WARN: No Consumer")


async def by_unique_key(call: Call) -> None:
    args = call.args
    topic, message_id = args.needed("t"), args.needed("i")
    begin, end = args.time("s") or 0, args.time("e")
    found = [
        message
        for message in await call.admin.messages.all_by_id(topic, message_id)
        if begin <= message.store_timestamp <= (TIME_MS_MAX if end is None else end)
    ]
    if not found:
        raise UsageError(f"topic {topic!r} has no message with the id {message_id}")
    client = args.text("d")
    if client:
        await _consume_directly(call, found[0], args.text("g"), client)
        return
    chosen = found[:SHOWN_MAX] if "a" in args else found[:1]
    for message in chosen:
        await show_message(call, message, has_offset_id=False)
    call.out.value(documents(chosen))


async def by_key(call: Call) -> None:
    args = call.args
    kind = args.text("p", "K")
    if kind not in ("K", "T"):
        raise UsageError(f"expected K (keys) or T (tags) for the option -p, got {kind!r}")
    if kind == "T" or args.text("l"):
        raise UsageError(
            "brokers index keys, not tags, and answer in one piece: -p T and -l are for RocketMQ's RocksDB index; "
            "`mqadmin printMsg -s TAG` finds messages by tag"
        )
    found = await call.admin.messages.by_key(
        args.needed("t"),
        args.needed("k"),
        begin_ms=args.time("b") or 0,
        end_ms=TIME_MS_MAX if args.time("e") is None else args.time("e") or 0,
        count_max=min(args.number("m", COUNT_MAX, low=1), COUNT_MAX),
    )
    rows = [(one.message_id, str(one.queue_id), str(one.queue_offset)) for one in found]
    call.out.table(FOUND, rows)
    call.out.value(documents(found))


async def by_offset(call: Call) -> None:
    args = call.args
    queue = MessageQueue(
        topic=args.needed("t"),
        broker_name=args.needed("b"),
        queue_id=args.number("i", 0, low=0),
    )
    message = await call.admin.messages.by_offset(queue, args.number("o", 0, low=0))
    await show_message(call, message, charset=args.text("f"))
    call.out.value(document(message))


FORMAT: Final = value("f", "bodyFormat", "show the body in this character set, such as UTF-8")
GROUP: Final = value("g", "consumerGroup", "a consumer group, for -d and -s")
CLIENT: Final = value("d", "clientId", "have this client of the group consume it now")

COMMANDS: Final = (
    Command(
        name="queryMsgById",
        summary="Show a message by its id, send it again, or have one consumer consume it.",
        run=by_id,
        options=(
            needed("i", "msgId", "id of the message; several separated by commas"),
            value("t", "topic", "its topic; not needed for an id with the broker's address in it"),
            GROUP,
            CLIENT,
            value("s", "sendMessage", "true: send it again: to the group (-g), or to all"),
            value("u", "unitName", "has no meaning here"),
            FORMAT,
            ROUTE_CLUSTER,
        ),
        examples=(
            "queryMsgById -t Orders -i 7F000001000052FC0000000000001325 -f UTF-8",
            "queryMsgById -t Orders -i 7F000001000052FC0000000000001325 -g billing -s true",
        ),
    ),
    Command(
        name="queryMsgByKey",
        summary="List the messages of a topic with a key.",
        run=by_key,
        options=(
            TOPIC,
            needed("k", "msgKey", "the key"),
            value("b", "beginTimestamp", "stored at this time or later (0)"),
            value("e", "endTimestamp", "stored at this time or earlier"),
            value("m", "maxNum", "at most so many of each broker (64, which is the most)"),
            value("p", "keyType", "K: keys, which is all there is"),
            value("l", "lastKey", "only for RocketMQ's RocksDB index"),
            ROUTE_CLUSTER,
        ),
        examples=("queryMsgByKey -t Orders -k order-17",),
    ),
    Command(
        name="queryMsgByUniqueKey",
        summary="Show a message by the id that its producer gave it.",
        run=by_unique_key,
        options=(
            needed("i", "msgId", "the id"),
            TOPIC,
            flag("a", "showAll", "retries of the same message, too; at most 32"),
            GROUP,
            CLIENT,
            ROUTE_CLUSTER,
            value("s", "startTime", "stored at this time or later"),
            value("e", "endTime", "stored at this time or earlier"),
        ),
        examples=("queryMsgByUniqueKey -t Orders -i C000020207431FE24D0D5BFEB6850013",),
    ),
    Command(
        name="queryMsgByOffset",
        summary="Show the message at an offset of a queue.",
        run=by_offset,
        options=(
            TOPIC,
            needed("b", "brokerName", "name of the broker"),
            needed("i", "queueId", "number of the queue"),
            needed("o", "offset", "the offset"),
            FORMAT,
            value("r", "routeTopic", "has no meaning here"),
        ),
        examples=("queryMsgByOffset -t Orders -b broker-a -i 0 -o 17 -f UTF-8",),
    ),
)
