"""Message trace: hooks that record what happens to each message, as RocketMQ's clients do.

Sends that a broker answered, deliveries and their results, and outcomes of transactions are traced, unless a broker or
a message says otherwise (``TRACE_ON`` false). One-way sends and sends without a reply leave no trace.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.aio.trace.send_hooks import SendContext, TransactionEnd
from cometmq.client.aio.trace.trace_dispatcher import MakeProducer, TraceDispatcher
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.consume.outcome import BadOutcome
from cometmq.client.core.send.send_result import SendStatus
from cometmq.client.trace_config import TraceConfig
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import MSG_REGION, TRACE_ON, TRANSACTION_PREPARED
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.trace import (
    ConsumeCode,
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    TraceMessageType,
    TraceRecord,
)

DEFAULT_REGION: Final = "DefaultRegion"

Append = Callable[[TraceRecord], None]
WallMs = Callable[[], int]

_STATES: Final = {
    "COMMIT": "COMMIT_MESSAGE",
    "ROLLBACK": "ROLLBACK_MESSAGE",
    "UNKNOWN": "UNKNOW",
}


def make_dispatcher(
    group: str, kind: str, config: TraceConfig, client: ClientConfig, make_producer: MakeProducer
) -> TraceDispatcher | None:
    """The dispatcher of a client, or None if it is not traced."""
    if not config.is_trace_on:
        return None
    return TraceDispatcher(group, kind, config, client, make_producer)


class SendTrace:
    """A send hook."""

    def __init__(self, append: Append, trace_topic: str, wall_ms: WallMs) -> None:
        self._append = append
        self._trace_topic = trace_topic
        self._wall_ms = wall_ms
        self._note = f"trace-{id(self)}"

    def before(self, context: SendContext) -> None:
        context.notes[self._note] = self._wall_ms()

    def after(self, context: SendContext) -> None:
        result = context.result
        if result is None or not result.is_traced or result.region_id is None:
            return
        if context.messages[0].topic == self._trace_topic:
            return
        count = len(context.messages)
        # A batch has its ids joined by commas; with a record per message, each can be found by its own id.
        ids = context.message_id.split(",")
        offset_ids = result.offset_id.split(",")
        for index, message in enumerate(context.messages):
            self._append(
                PubTrace(
                    timestamp=context.notes[self._note],
                    region_id=result.region_id,
                    group=context.group,
                    topic=message.topic,
                    message_id=ids[index] if len(ids) == count else context.message_id,
                    tags=message.tags,
                    keys=_keys_of(message),
                    store_host=context.address,
                    body_bytes=len(message.body),
                    cost_ms=round(context.elapsed_ms / count),
                    message_type=_type_of(message),
                    offset_id=offset_ids[index] if len(offset_ids) == count else result.offset_id,
                    is_success=result.status is SendStatus.SEND_OK,
                )
            )


class ConsumeTrace:
    """A consume hook."""

    def __init__(self, append: Append, trace_topic: str, wall_ms: WallMs) -> None:
        self._append = append
        self._trace_topic = trace_topic
        self._wall_ms = wall_ms
        self._note = f"trace-{id(self)}"

    def before(self, context: ConsumeContext) -> None:
        request_id = uuid.uuid4().hex.upper()
        context.notes[self._note] = request_id
        now_ms = self._wall_ms()
        for message in context.messages:
            if self._is_traced(message):
                self._append(
                    SubBeforeTrace(
                        timestamp=now_ms,
                        region_id=message.properties.get(MSG_REGION),
                        group=context.group,
                        request_id=request_id,
                        message_id=message.message_id,
                        retry_times=message.reconsume_times,
                        keys=_keys_of(message),
                    )
                )

    def after(self, context: ConsumeContext) -> None:
        now_ms = self._wall_ms()
        for index, message in enumerate(context.messages):
            if self._is_traced(message):
                is_success = index < context.consumed_count
                self._append(
                    SubAfterTrace(
                        request_id=context.notes[self._note],
                        message_id=message.message_id,
                        cost_ms=round(context.elapsed_ms / len(context.messages)),
                        is_success=is_success,
                        keys=_keys_of(message),
                        context_code=_code_of(context, is_success),
                        timestamp=now_ms,
                        group=context.group,
                    )
                )

    def _is_traced(self, message: ReceivedMessage) -> bool:
        return message.topic != self._trace_topic and message.properties.get(TRACE_ON) != "false"


class TransactionTrace:
    """An end hook."""

    def __init__(self, append: Append, wall_ms: WallMs) -> None:
        self._append = append
        self._wall_ms = wall_ms

    def __call__(self, end: TransactionEnd) -> None:
        message = end.message
        region = DEFAULT_REGION
        if isinstance(message, ReceivedMessage):
            if message.properties.get(TRACE_ON) == "false":
                return
            region = message.properties.get(MSG_REGION, region)
        self._append(
            EndTransactionTrace(
                timestamp=self._wall_ms(),
                region_id=region,
                group=end.group,
                topic=message.topic,
                message_id=end.message_id,
                tags=message.tags,
                keys=_keys_of(message),
                store_host=end.address,
                message_type=TraceMessageType.TRANSACTION_COMMIT,
                transaction_id=end.transaction_id,
                state=_STATES[end.state],
                is_from_check=end.is_from_check,
            )
        )


def _keys_of(message: Message | ReceivedMessage) -> str | None:
    keys = message.keys
    return (keys if isinstance(keys, str) else " ".join(keys)) or None


def _type_of(message: Message) -> TraceMessageType:
    if message.internal_properties.get(TRANSACTION_PREPARED) == "true":
        return TraceMessageType.TRANSACTION_HALF
    # Ordered messages count as normal: a 4.9 reader does not know the type, and no RocketMQ client writes it.
    return TraceMessageType.DELAY if message.is_delayed else TraceMessageType.NORMAL


def _code_of(context: ConsumeContext, is_success: bool) -> ConsumeCode:
    if isinstance(context.error, BadOutcome):
        return ConsumeCode.RETURN_NULL
    if context.error is not None:
        return ConsumeCode.EXCEPTION
    return ConsumeCode.SUCCESS if is_success else ConsumeCode.FAILED
