"""What one task writes to one broker: requests that are under way, and what becomes of them when something fails.

A request whose reply is lost may or may not have been stored. With our broker the lane is opened again, under a new
name, so that nothing of the old connection can still come in; then the log is asked which rows of the requests under
way it holds, and only the others are sent again. RocketMQ's broker cannot be asked: there all of them are sent again.
"""

from __future__ import annotations

import logging
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from cometmq.base.errors import CometError, ConnectionLost, RemotingError
from cometmq.client.core.send.prepare import Envelope, SendRequest
from cometmq.client.core.send.send_result import SendResult, send_result
from cometmq.client.sync.bulk_client import BrokerLink
from cometmq.model.messages.batch import encode_batch
from cometmq.model.messages.properties import WAIT
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.sink import (
    OpenSinkHeader,
    OpenSinkReply,
    SinkStoredHeader,
    SinkStoredReply,
)
from cometmq.protocol.reply_errors import (
    FlowControl,
    IllegalOperation,
    ServiceNotAvailable,
    SystemBusy,
    error_for,
)
from cometmq.spark.retry import PAUSE_SECONDS, PAUSE_SECONDS_MAX, until_done
from cometmq.spark.sink.sink_errors import NotExactlyOnce, SinkFenced, SinkStalled
from cometmq.spark.sink.sink_options import OFF, REQUIRE, SinkOptions
from cometmq.spark.sink.sink_request import Request

logger = logging.getLogger("cometmq.spark")

RECOVERIES_MAX: Final = 100

_ROW = struct.Struct(">q16s")
_KEYS: Final = np.dtype([("offset", ">i8"), ("key", ">u8"), ("rest", ">u8")])
_BATCH_PROPERTIES: Final = f"{WAIT}\x01true\x02"
_OFFSET_CHARS: Final = 16

Result = TypeVar("Result")
Connect = Callable[[], BrokerLink]
"""Opens a connection to the broker, wherever it is by now. Raises CometError."""


class BrokerLane:
    """Not thread-safe. ``open`` it, then ``submit`` requests and ``settle`` each."""

    def __init__(
        self,
        broker_name: str,
        connect: Connect,
        options: SinkOptions,
        mark: SinkMark,
        attempt: str,
        run: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.broker_name = broker_name
        self.is_tracked = False
        """Whether the broker keeps rows from being stored twice."""
        self.unchecked = ""
        """Some other partitions of this batch that another run has written, and that were not checked in this one."""
        self.is_other_run = False
        """Whether one of them is known to be of another run; otherwise the broker was restarted since."""
        self._is_checked = False
        self._connect = connect
        self._options = options
        self._mark = mark
        self._attempt = attempt
        self._run = run
        self._monotonic = monotonic
        self._sleep = sleep
        self._envelope = Envelope(
            group=options.group,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=options.topic_queues,
            unit_mode=False,
        )
        self._link: BrokerLink | None = None
        self._openings = 0
        self._writer = ""
        # A dict for its order.
        self._under_way: dict[Request, None] = {}
        self._seen_offset = 0
        self._acknowledged: list[tuple[int, int]] = []

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    @property
    def needs_check(self) -> bool:
        """Whether another run has begun this batch, so that nothing may be sent before ``confirm``."""
        return self.is_tracked and not self._is_checked

    def open(self) -> Counter[bytes]:
        """Connect and take the lane. The keys of what earlier attempts of this batch have stored here.

        Raises:
            NotExactlyOnce: the broker cannot do it, and it was required.
            SinkStalled: the broker cannot be reached.
            CometError: it refuses.
        """
        return self._until_done(self._open_first)

    def confirm(self) -> None:
        """Tell that all rows that ``open`` found are written again. Asks anew for ``unchecked``; raises as ``open``."""
        self._is_checked = True
        self._until_done(self._open_again)

    def is_any_held_by_others(self, wanted: npt.NDArray[np.uint64]) -> bool:
        """Whether the log holds rows of other partitions of this batch with such keys (the first half of each)."""

        def look() -> bool:
            opened = self._take_lane(is_again=True)
            if opened is None:
                return False
            pieces = self._stored_pieces(opened.batch_offset, opened.end_offset, of_others=True)
            return any(
                np.isin(np.frombuffer(piece, _KEYS)["key"], wanted).any() for piece in pieces
            )

        return self._until_done(look)

    def submit(self, request: Request) -> None:
        """Send a request, not waiting for the reply. Raises as ``settle`` does."""
        # Before it is sent: nobody knows how much of it has left when that fails.
        self._under_way[request] = None
        try:
            self._send(request)
        except RemotingError as error:
            self._recover(error)

    def settle(self, request: Request) -> None:
        """Return once everything in the request is stored.

        Raises:
            SinkStalled: it was not, within the retry timeout.
            SinkFenced: a later attempt writes this partition.
            BrokerReplyError: the broker refuses it, whatever one does.
        """
        deadline: float | None = None
        pause = PAUSE_SECONDS
        recoveries = 0
        while request in self._under_way:
            if recoveries > RECOVERIES_MAX:
                raise SinkStalled(
                    f"{self}: a request was not stored after {RECOVERIES_MAX} new connections"
                )
            try:
                self._stored(request, self._result(request))
            except RemotingError as error:
                recoveries += 1
                self._recover(error)
            except (SystemBusy, ServiceNotAvailable, FlowControl) as error:
                # Refused before anything was stored, and may be taken a moment later.
                now = self._monotonic()
                deadline = deadline or now + self._options.retry_seconds
                if now + pause > deadline:
                    raise SinkStalled(
                        f"{self} was busy for {self._options.retry_seconds:g} s (retryTimeout): {error.remark}"
                    ) from error
                self._sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)
                del self._under_way[request]
                self.submit(request)
            except IllegalOperation as error:
                if not self.is_tracked:
                    raise
                # The broker was restarted, or a later attempt has the lane: opening tells.
                recoveries += 1
                self._recover(error)

    def settle_oldest(self) -> None:
        self.settle(next(iter(self._under_way)))

    def settle_all(self) -> None:
        while self._under_way:
            self.settle_oldest()

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def __str__(self) -> str:
        return f"broker {self.broker_name}"

    # Opening, and opening again.

    def _open_first(self) -> Counter[bytes]:
        # A repeated try may follow one whose request had arrived, and a later attempt may have come since.
        opened = self._take_lane(is_again=self._openings > 0)
        if opened is None:
            return Counter()
        self._seen_offset = opened.end_offset
        return self._read_stored(opened.first_offset, opened.end_offset, [])

    def _take_lane(self, *, is_again: bool) -> OpenSinkReply | None:
        """Connect and open; None when the broker does not keep lanes."""
        self.close()
        link = self._link = self._connect()
        if self._options.exactly_once == OFF:
            return None
        self._writer = f"{self._attempt}.{self._openings}"
        self._openings += 1
        mark = self._mark
        header = OpenSinkHeader(
            sink=mark.sink,
            partition=mark.partition,
            batch=mark.batch,
            writer=self._writer,
            is_again=is_again,
            run=self._run,
            is_checked=self._is_checked,
        )
        reply = link.call(Command(RequestCode.OPEN_SINK, encode_fields(header)))
        if reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            if self._options.exactly_once == REQUIRE:
                raise NotExactlyOnce(
                    f"{self} at {link.address} does not keep rows from being written twice; expected a "
                    "CometMQ broker of this version, or set the option exactlyOnce to auto for at least once"
                )
            self.is_tracked = False
            return None
        if reply.code == ResponseCode.ILLEGAL_OPERATION:
            raise SinkFenced(f"{self}: {reply.remark}")
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, link.address)
        self.is_tracked = True
        opened = decode_fields(OpenSinkReply, reply.ext)
        self.unchecked, self.is_other_run = opened.unchecked, opened.is_other_run
        if opened.is_checked and not opened.unchecked:
            self._is_checked = True
        return opened

    def _read_stored(
        self, first: int, end: int, acknowledged: list[tuple[int, int]]
    ) -> Counter[bytes]:
        """Keys of this batch's rows between two offsets of the log, without those that are known to be there."""
        keys: Counter[bytes] = Counter()
        for piece in self._stored_pieces(first, end):
            for physical_offset, key in _ROW.iter_unpack(piece):
                if not any(start <= physical_offset <= last for start, last in acknowledged):
                    keys[key] += 1
        return keys

    def _stored_pieces(
        self, first: int, end: int, *, of_others: bool = False
    ) -> Iterator[memoryview | bytes]:
        """Offsets and keys of the rows of this batch, as the broker gives them."""
        mark = self._mark
        while first < end:
            header = SinkStoredHeader(
                sink=mark.sink,
                partition=mark.partition,
                batch=mark.batch,
                first_offset=first,
                end_offset=end,
                of_others=of_others,
            )
            assert self._link is not None
            reply = self._link.call(Command(RequestCode.SINK_STORED, encode_fields(header)))
            if reply.code != ResponseCode.SUCCESS:
                raise error_for(reply, self._link.address)
            yield reply.body
            first = decode_fields(SinkStoredReply, reply.ext).next_offset

    def _recover(self, cause: CometError) -> None:
        """Connect again and bring what is under way to where it has to be. Raises SinkStalled, SinkFenced."""
        logger.warning(
            "connection of a sink is made anew broker=%s cause=%s", self.broker_name, cause
        )
        self._until_done(self._open_again)

    def _open_again(self) -> Counter[bytes]:
        requests = list(self._under_way)
        opened = self._take_lane(is_again=True)
        stored: Counter[bytes] = Counter()
        if opened is not None and requests:
            seen = min(request.seen_offset for request in requests)
            stored = self._read_stored(seen, opened.end_offset, self._acknowledged)
        for request in requests:
            request.leave_out(stored)
            if not request.elements:
                del self._under_way[request]
        if opened is not None:
            self._seen_offset = opened.end_offset
            self._acknowledged.clear()
        # All of them stay noted while they are sent: a failure in between must not lose one.
        for request in self._under_way:
            # What the log holds up to here was left out, and must not be counted a second time.
            request.seen_offset = self._seen_offset
            request.reply = None
        for request in self._under_way:
            self._send(request)
        return stored

    def _until_done(self, step: Callable[[], Result]) -> Result:
        """Repeat a step while it fails in a way that may pass. Raises SinkStalled."""
        return until_done(
            step,
            patience=lambda _: self._options.retry_seconds,
            give_up=lambda cause, seconds: SinkStalled(
                f"{self} could not be written to for {seconds:g} s (retryTimeout): {cause}"
            ),
            monotonic=self._monotonic,
            sleep=self._sleep,
        )

    # Sending.

    def _send(self, request: Request) -> None:
        assert self._link is not None
        request.seen_offset = self._seen_offset
        request.reply = None
        request.reply = self._link.start(self._command(request))

    def _command(self, request: Request) -> Command:
        if request.is_batch:
            code, body = RequestCode.SEND_BATCH_MESSAGE, encode_batch(request.elements)
            properties = _BATCH_PROPERTIES
        else:
            ((_, body, raw),) = request.elements
            code, properties = RequestCode.SEND_MESSAGE_V2, raw.decode()
        command = SendRequest(
            envelope=self._envelope,
            code=code,
            wire_topic=request.wire_topic,
            body=body,
            message_id="",
            properties=properties,
            born_ms=time.time_ns() // 1_000_000,
        ).to(request.queue)
        if self.is_tracked:
            assert command.ext is not None
            command.ext["sink"] = self._writer
        return command

    def _result(self, request: Request) -> SendResult:
        assert self._link is not None
        if request.reply is None:
            raise ConnectionLost(f"the connection to {self._link.address} is closed")
        reply = self._link.finish(request.reply)
        return send_result(reply, self._link.address, request.queue, "")

    def _stored(self, request: Request, result: SendResult) -> None:
        """Whatever else was not confirmed in time, it is stored."""
        del self._under_way[request]
        if not self.is_tracked:
            return
        ids = result.offset_id
        first = int(ids.partition(",")[0][-_OFFSET_CHARS:], 16)
        last = int(ids[-_OFFSET_CHARS:], 16)
        self._acknowledged.append((first, last))
        self._seen_offset = max(self._seen_offset, last)
        oldest = min((other.seen_offset for other in self._under_way), default=self._seen_offset)
        self._acknowledged = [span for span in self._acknowledged if span[1] >= oldest]
