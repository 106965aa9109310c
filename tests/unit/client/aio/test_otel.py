"""Spans of sends and deliveries, told to a tracer that remembers them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from cometmq.base.errors import UsageError
from cometmq.client.aio import otel
from cometmq.client.aio.otel import ConsumeSpans, MessageSpans
from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.core.send.send_result import SendResult, SendStatus
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

QUEUE = MessageQueue(broker_name="b", queue_id=1, topic="T")


class FakeSpan(NonRecordingSpan):
    def __init__(self, context: SpanContext, name: str, parent: int, **facts: Any) -> None:
        super().__init__(context)
        self.name = name
        self.parent = parent
        self.kind: SpanKind = facts["kind"]
        self.attributes: dict[str, Any] = dict(facts["attributes"])
        self.links = list(facts.get("links") or ())
        self.status: Any = None
        self.errors: list[BaseException] = []
        self.is_ended = False

    def is_recording(self) -> bool:
        return not self.is_ended

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def record_exception(self, exception: BaseException, *args: Any, **more: Any) -> None:
        self.errors.append(exception)

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = (status, description)

    def end(self, end_time: int | None = None) -> None:
        self.is_ended = True


class FakeTracer:
    """The part of the API's tracer that is used; real span contexts, so that real propagators carry them."""

    def __init__(self) -> None:
        self.spans: list[FakeSpan] = []
        self._numbers = itertools.count(1)

    def start_span(self, name: str, context: Any = None, **facts: Any) -> FakeSpan:
        parent = trace.get_current_span(context).get_span_context()
        number = next(self._numbers)
        trace_id = parent.trace_id if parent.is_valid else 1000 + number
        own = SpanContext(trace_id, number, is_remote=False, trace_flags=TraceFlags(1))
        span = FakeSpan(own, name, parent.span_id, **facts)
        self.spans.append(span)
        return span

    @contextmanager
    def start_as_current_span(self, name: str, **facts: Any) -> Iterator[FakeSpan]:
        span = self.start_span(name, **facts)
        with trace.use_span(span, end_on_exit=True):
            yield span


def _tracer() -> Any:
    return FakeTracer()


def _received(message: Message) -> ReceivedMessage:
    return ReceivedMessage(
        topic=message.topic, body=message.body, properties={**message.properties, "UNIQ_KEY": "M"}
    )


def _consume(
    tracer: Any, messages: list[ReceivedMessage], consumed: int, error: Exception | None = None
) -> FakeSpan:
    hook = ConsumeSpans(tracer)
    context = ConsumeContext(group="g", queue=QUEUE, messages=messages, is_orderly=False)
    hook.before(context)
    inner = tracer.start_span("inner", kind=SpanKind.INTERNAL, attributes={})
    context.consumed_count, context.error = consumed, error
    hook.after(context)
    span: FakeSpan = tracer.spans[-2]
    assert inner.parent == span.get_span_context().span_id
    assert not trace.get_current_span().get_span_context().is_valid
    return span


def _sent_message(tracer: Any, topic: str = "T") -> Message:
    with MessageSpans(tracer).sending("g", Message(topic=topic, body=b"abc", tags="t")) as sending:
        sending.result = SendResult(
            status=SendStatus.SEND_OK,
            message_id="M1",
            offset_id="O",
            queue=QUEUE,
            queue_offset=0,
        )
    return sending.message


def test_a_send_has_a_span_and_its_context_in_the_message() -> None:
    tracer = _tracer()
    message = _sent_message(tracer)
    [span] = tracer.spans
    assert (span.name, span.kind, span.is_ended) == ("send T", SpanKind.PRODUCER, True)
    assert span.attributes["messaging.system"] == "rocketmq"
    assert span.attributes["messaging.destination.name"] == "T"
    assert span.attributes["messaging.message.id"] == "M1"
    assert span.attributes["messaging.destination.partition.id"] == "b/1"
    assert span.attributes["messaging.message.body.size"] == 3
    version, trace_id, span_id, flags = message.properties["traceparent"].split("-")
    context = span.get_span_context()
    assert (version, flags) == ("00", "01")
    assert (int(trace_id, 16), int(span_id, 16)) == (context.trace_id, context.span_id)


def test_the_users_message_stays_as_it_is() -> None:
    properties = {"a": "b"}
    message = Message(topic="T", body=b"x", properties=properties)
    with MessageSpans(_tracer()).sending("g", message) as sending:
        assert sending.message.properties["a"] == "b"
    assert message.properties == {"a": "b"}


def test_a_failed_send_is_recorded_and_passes_on() -> None:
    tracer = _tracer()
    with (
        pytest.raises(ValueError, match="no"),
        MessageSpans(tracer).sending("g", Message(topic="T", body=b"x")),
    ):
        raise ValueError("no")
    [span] = tracer.spans
    assert span.is_ended
    assert [str(error) for error in span.errors] == ["no"]


def test_a_delivery_is_a_child_of_the_send() -> None:
    tracer = _tracer()
    message = _sent_message(tracer)
    sent = tracer.spans[0].get_span_context()
    span = _consume(tracer, [_received(message)], 1)
    assert (span.name, span.kind, span.is_ended) == ("process T", SpanKind.CONSUMER, True)
    assert (span.parent, span.get_span_context().trace_id) == (sent.span_id, sent.trace_id)
    assert span.attributes["messaging.consumer.group.name"] == "g"
    assert span.status is None


def test_a_message_without_context_begins_a_trace_of_its_own() -> None:
    span = _consume(_tracer(), [_received(Message(topic="T", body=b"x"))], 1)
    assert span.parent == 0


def test_a_batch_is_linked_to_its_sends() -> None:
    tracer = _tracer()
    messages = [_received(_sent_message(tracer)), _received(_sent_message(tracer))]
    ids = [span.get_span_context().span_id for span in tracer.spans]
    plain = _received(Message(topic="T", body=b"x"))
    span = _consume(tracer, [*messages, plain], 3)
    assert [link.context.span_id for link in span.links] == ids
    assert span.attributes["messaging.batch.message_count"] == 3


def test_what_a_listener_raises_or_wants_again_is_an_error() -> None:
    message = _received(Message(topic="T", body=b"x"))
    span = _consume(_tracer(), [message], 0, ValueError("bad"))
    assert span.status == (StatusCode.ERROR, "ValueError: bad")
    assert [str(error) for error in span.errors] == ["bad"]
    span = _consume(_tracer(), [message, message], 1)
    assert span.status == (StatusCode.ERROR, "1 to be delivered again")


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otel, "_loaded", [])
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UsageError, match=r"cometmq\[otel\]"):
        MessageSpans()
