"""Recalls a timed message: its handle says which broker has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cometmq.base.errors import CallTimedOut, CometError, UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import MSG_REGION
from cometmq.model.messages.recall_handle import decode_recall_handle
from cometmq.model.names import check_topic
from cometmq.model.trace import RecallTrace
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.send import RecallMessageHeader, RecallMessageReply
from cometmq.protocol.reply_errors import error_for


async def recall(
    instance: ClientInstance,
    group: str,
    topic: str,
    recall_handle: str | None,
    seconds: float,
    trace: Callable[[RecallTrace], None] | None,
) -> str:
    """The id of the message, which the broker will not deliver. Raises the errors of ``Producer.recall``.

    Args: trace: called with the broker's reply, if that says where it is.
    """
    check_topic(topic)
    if recall_handle is None:
        raise UsageError(
            "expected the recall handle of a message with a time of delivery, got None: "
            "delay levels have none, and RocketMQ 4 brokers give none"
        )
    handle = decode_recall_handle(recall_handle)
    wire_topic = instance.wrap_topic(topic)
    if handle.topic != wire_topic:
        raise UsageError(
            f"the recall handle is of topic {instance.unwrap_topic(handle.topic)!r}, not {topic!r}"
        )
    header = RecallMessageHeader(
        producer_group=instance.wrap_group(group),
        topic=wire_topic,
        recall_handle=recall_handle,
        broker_name=handle.broker_name,
    )
    deadline = instance.clock.monotonic() + seconds
    # Any queue of the broker: a timed message is not in a queue while it waits.
    queue = MessageQueue(broker_name=handle.broker_name, queue_id=0, topic=wire_topic)
    try:
        async with asyncio.timeout(seconds):
            address = await instance.find_master(queue)
    except TimeoutError:
        raise CallTimedOut(f"no route of topic {topic!r} in time", sent=False) from None
    left = deadline - instance.clock.monotonic()
    if left <= 0:
        raise CallTimedOut("no time is left for the recall", sent=False)
    request = Command(RequestCode.RECALL_MESSAGE, encode_fields(header))
    try:
        reply = await instance.call(address, request, left)
    except CometError as error:
        if error.route_is_stale:
            instance.forget_route(wire_topic)
        raise
    region_id = (reply.ext or {}).get(MSG_REGION)
    if trace is not None and region_id is not None:
        trace(
            RecallTrace(
                timestamp=instance.clock.wall_ms(),
                region_id=region_id,
                group=group,
                topic=topic,
                message_id=handle.unique_key,
                is_success=reply.code == ResponseCode.SUCCESS,
            )
        )
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
    return decode_fields(RecallMessageReply, reply.ext).msg_id
