"""OpenTelemetry spans for sends and deliveries, for programs that have ``opentelemetry-api`` installed.

    spans = MessageSpans()
    with spans.sending("orders", message) as sending:            # a PRODUCER span; the message carries its context
        sending.result = await producer.send(sending.message)    # the same in a blocking program, without await

    consumer.hooks.append(ConsumeSpans())                        # a CONSUMER span around each call of the listener

Message properties carry the context (``traceparent``, ``tracestate``, or what the program's propagators write), so
producer and consumer are in one trace, whatever language the other side is written in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.core.send.send_result import SendResult
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import RESERVED
from cometmq.model.messages.received_message import ReceivedMessage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

NAME: Final = "cometmq"
SYSTEM: Final = "rocketmq"


class Sending:
    """A send inside its span: send ``message``, then set ``result``."""

    __slots__ = ("message", "result", "span")

    def __init__(self, message: Message, span: Span) -> None:
        self.message = message
        self.span = span
        self.result: SendResult | None = None


class MessageSpans:
    """Creates producer spans. One instance serves all producers, tasks and threads.

    Args:
        tracer: by default one from the program's tracer provider.

    Raises:
        UsageError: ``opentelemetry-api`` is not installed.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or _api().trace.get_tracer(NAME)

    @contextmanager
    def sending(self, group: str, message: Message) -> Iterator[Sending]:
        """A span around a send, as a child of the current one. Exceptions inside are recorded and propagated."""
        trace = _api().trace
        attributes: dict[str, str | int] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": message.topic,
            "messaging.rocketmq.client_group": group,
            "messaging.message.body.size": len(message.body),
        }
        if message.tags:
            attributes["messaging.rocketmq.message.tag"] = message.tags
        with self._tracer.start_as_current_span(
            f"send {message.topic}", kind=trace.SpanKind.PRODUCER, attributes=attributes
        ) as span:
            sending = Sending(with_context(message), span)
            yield sending
            if sending.result is not None:
                span.set_attribute("messaging.message.id", sending.result.message_id)
                queue = sending.result.queue
                partition = f"{queue.broker_name}/{queue.queue_id}"
                span.set_attribute("messaging.destination.partition.id", partition)


def with_context(message: Message) -> Message:
    """The message with the current context in its properties. In a batch, each message needs it."""
    carrier: dict[str, str] = {}
    _api().propagate.inject(carrier)
    added = {
        name: value
        for name, value in carrier.items()
        if name and value and not value.isspace() and name not in RESERVED
    }
    if not added:
        return message
    return msgspec.structs.replace(message, properties={**message.properties, **added})


class ConsumeSpans:
    """A consume hook: a span around each listener call, current while the listener runs.

    For one message it is a child of the span that sent it; for a batch it is a new span with links to them.

    Raises:
        UsageError: ``opentelemetry-api`` is not installed.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or _api().trace.get_tracer(NAME)
        self._note = f"otel-{id(self)}"

    def before(self, context: ConsumeContext) -> None:
        api = _api()
        messages = context.messages
        origins = [origin_of(message) for message in messages]
        is_batch = len(messages) > 1
        links = []
        if is_batch:
            found = [api.trace.get_current_span(origin).get_span_context() for origin in origins]
            links = [api.trace.Link(each) for each in found if each.is_valid]
        span = self._tracer.start_span(
            f"process {messages[0].topic}",
            context=None if is_batch else origins[0],
            kind=api.trace.SpanKind.CONSUMER,
            attributes=_attributes(context),
            links=links,
        )
        # The listener runs in the same task or thread, so its own spans become children of this one.
        token = api.context.attach(api.trace.set_span_in_context(span))
        context.notes[self._note] = (span, token)

    def after(self, context: ConsumeContext) -> None:
        api = _api()
        span, token = context.notes.pop(self._note)
        api.context.detach(token)
        if context.error is not None:
            span.record_exception(context.error)
            text = f"{type(context.error).__name__}: {context.error}"
            span.set_status(api.trace.StatusCode.ERROR, text)
        elif context.consumed_count < len(context.messages):
            left = len(context.messages) - context.consumed_count
            span.set_status(api.trace.StatusCode.ERROR, f"{left} to be delivered again")
        span.end()


def origin_of(message: ReceivedMessage) -> Context:
    """The context carried by a message; empty if it has none."""
    api = _api()
    carrier: Mapping[str, str] = message.properties
    found: Context = api.propagate.extract(carrier, context=api.context.Context())
    return found


def _attributes(context: ConsumeContext) -> dict[str, str | int]:
    first = context.messages[0]
    attributes: dict[str, str | int] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": first.topic,
        "messaging.destination.partition.id": f"{context.queue.broker_name}/{context.queue.queue_id}",
        "messaging.consumer.group.name": context.group,
    }
    if len(context.messages) > 1:
        attributes["messaging.batch.message_count"] = len(context.messages)
        return attributes
    attributes["messaging.message.id"] = first.message_id
    attributes["messaging.message.body.size"] = len(first.body)
    if first.tags:
        attributes["messaging.rocketmq.message.tag"] = first.tags
    return attributes


class _Api:
    """The modules of OpenTelemetry that are used here."""

    def __init__(self) -> None:
        from opentelemetry import context, propagate, trace

        self.context: Any = context
        self.propagate: Any = propagate
        self.trace: Any = trace


_loaded: list[_Api] = []


def _api() -> _Api:
    if not _loaded:
        try:
            _loaded.append(_Api())
        except ImportError as error:
            raise UsageError(
                "OpenTelemetry is not installed; pip install 'cometmq[otel]' brings it"
            ) from error
    return _loaded[0]
