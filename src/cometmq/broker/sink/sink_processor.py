"""Sinks that write every row once: OPEN_SINK, SINK_STORED, CLOSE_SINK and GET_SINK_LANES, requests of our own.

A writer opens its lane, reads what earlier attempts of its batch have stored, and leaves that out; see ``sink_record``
for why this is enough, and ``headers.sink`` for the fields. Its sends carry its name, which ``SendProcessor`` checks.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from cometmq.base.errors import CometError, UsageError
from cometmq.broker.sink.sink_keeper import SinkKeeper
from cometmq.broker.sink.sink_record import SinkRecord
from cometmq.model.messages.sink_mark import SinkMark, check_sink_id
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.sink import (
    CloseSinkHeader,
    OpenSinkHeader,
    OpenSinkReply,
    SinkStoredHeader,
    SinkStoredReply,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore

SCAN_BYTES: Final = 4 << 20
"""How much of the log one request looks at: about ten milliseconds, in which nobody else is served."""
WRITER_CHARS_MAX: Final = 100


class SinkProcessor:
    def __init__(self, *, record: SinkRecord, keeper: SinkKeeper, store: MessageStore) -> None:
        self._record = record
        self._keeper = keeper
        self._store = store

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.OPEN_SINK, self.open)
        dispatcher.add(RequestCode.SINK_STORED, self.stored)
        dispatcher.add(RequestCode.CLOSE_SINK, self.close)
        dispatcher.add(RequestCode.GET_SINK_LANES, self.lanes)

    def open(self, connection: Connection, command: Command) -> Command | Awaitable[Command]:
        header = decode_fields(OpenSinkHeader, command.ext)
        mark = _mark(header)
        if not 0 < len(header.writer) <= WRITER_CHARS_MAX or len(header.run) > WRITER_CHARS_MAX:
            raise _invalid(
                f"a writer's name has 1 to {WRITER_CHARS_MAX} characters, a run's no more"
            )
        self._require_keeper()
        if not self._keeper.is_writing:
            return self._open_later(command, header, mark)
        return self._open(command, header, mark)

    async def _open_later(
        self, command: Command, header: OpenSinkHeader, mark: SinkMark
    ) -> Command:
        try:
            await self._keeper.begin()
        except (CometError, OSError) as error:
            raise Refused(
                ResponseCode.SERVICE_NOT_AVAILABLE, f"the lanes of sinks cannot be saved: {error}"
            ) from error
        self._require_keeper()
        return self._open(command, header, mark)

    def _open(self, command: Command, header: OpenSinkHeader, mark: SinkMark) -> Command:
        log_end = self._store.max_physical
        opened = self._record.open(
            mark,
            header.writer,
            is_again=header.is_again,
            log_end=log_end,
            run=header.run,
            is_checked=header.is_checked,
        )
        self._keeper.used()
        reply = OpenSinkReply(
            first_offset=opened.first_offset,
            end_offset=log_end,
            is_checked=opened.is_checked,
            unchecked=",".join(map(str, opened.unchecked)),
            is_other_run=opened.is_other_run,
            batch_offset=opened.batch_offset,
        )
        return command.reply(ext=encode_fields(reply))

    def stored(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(SinkStoredHeader, command.ext)
        mark = _mark(header)
        first, end = header.first_offset, min(header.end_offset, self._store.max_physical)
        if first < 0:
            raise _invalid(f"firstOffset {first} is negative")
        found = self._store.sink_rows(mark, first, end, SCAN_BYTES, of_others=header.of_others)
        if found.next_offset <= first < end:
            raise _invalid(f"no record of the log begins at offset {first}")
        # Asking is a sign of life, too: a long read must not end in a lane that was closed meanwhile.
        self._keeper.used()
        reply = SinkStoredReply(next_offset=max(found.next_offset, first), count=found.count)
        return command.reply(ext=encode_fields(reply), body=found.rows)

    def close(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(CloseSinkHeader, command.ext)
        _check(header.sink)
        self._require_keeper()
        self._record.close(header.sink)
        return command.reply()

    def lanes(self, connection: Connection, command: Command) -> Command:
        """For a slave."""
        self._require_keeper()
        return command.reply(body=self._keeper.content().encode())

    def _require_keeper(self) -> None:
        if not self._keeper.is_running:
            raise Refused(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now: this broker is not the master",
            )


def _mark(header: OpenSinkHeader | SinkStoredHeader) -> SinkMark:
    _check(header.sink)
    if header.partition < 0 or not 0 <= header.batch < 10**18:
        raise _invalid(f"partition {header.partition} and batch {header.batch} must be 0 or more")
    return SinkMark(header.sink, header.partition, header.batch)


def _check(sink: str) -> None:
    try:
        check_sink_id(sink)
    except UsageError as error:
        raise _invalid(str(error)) from None


def _invalid(text: str) -> Refused:
    return Refused(ResponseCode.INVALID_PARAMETER, text)
