"""Message traces: what producers and consumers reported about a message."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.admin.calls import Calls
from cometmq.base.errors import RemoteProtocolError, UsageError
from cometmq.client.aio.instance.queries import query
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.model.names import TRACE_TOPIC
from cometmq.model.trace import SubAfterTrace, SubBeforeTrace, TraceRecord, decode_traces


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A report; ``client`` is the address of who made it, ``stored_ms`` when the broker got it."""

    record: TraceRecord
    client: str
    stored_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """A listener's call. ``after`` is None as long as no end was reported."""

    client: str
    before: SubBeforeTrace
    after: SubAfterTrace | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrace:
    """All reports about a message, in the order in which they were stored."""

    message_id: str
    rows: list[TraceRow]

    @property
    def consumptions(self) -> list[Consumption]:
        """Starts and ends of listener calls, put together."""
        ends = {
            row.record.request_id: row.record
            for row in self.rows
            if isinstance(row.record, SubAfterTrace)
        }
        return [
            Consumption(client=row.client, before=row.record, after=ends.get(row.record.request_id))
            for row in self.rows
            if isinstance(row.record, SubBeforeTrace)
        ]


class Traces:
    """``admin.traces``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def of_message(
        self,
        message_id: str,
        *,
        topic: str = TRACE_TOPIC,
        begin_ms: int = 0,
        end_ms: int = TIME_MS_MAX,
        count_max: int = 64,
    ) -> MessageTrace:
        """What was reported about a message (12 in the topic of traces); nothing if it is not traced.

        Args:
            topic: where the clients write their traces.
            count_max: how many trace messages each broker looks up, at most 64.

        Raises:
            NoRoute: there is no such topic.
            RemoteProtocolError: a trace cannot be read.
        """
        if not message_id:
            raise UsageError("expected the id of a message, got an empty text")
        found = await query(self._calls.instance, topic, message_id, begin_ms, end_ms, count_max)
        rows: list[TraceRow] = []
        for message in sorted(found, key=lambda one: one.store_timestamp):
            try:
                text = bytes(message.body).decode()
            except UnicodeDecodeError as error:
                raise RemoteProtocolError(
                    f"trace {message.offset_id} is no text: {error}"
                ) from None
            rows += [
                TraceRow(record=record, client=message.born_host, stored_ms=message.store_timestamp)
                for record in decode_traces(text)
                if record.message_id == message_id
            ]
        return MessageTrace(message_id=message_id, rows=rows)
