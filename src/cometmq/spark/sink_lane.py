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

from cometmq.base.errors import CometError, RemotingError
from cometmq.model.batch import encode_batch
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.model.sink import SinkMark
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.sink import (
    OpenSinkHeader,
    OpenSinkReply,
    SinkStoredHeader,
    SinkStoredReply,
)
from cometmq.protocol.reply_errors import error_for
from cometmq.spark.connection import BlockingConnection
from cometmq.spark.retry import PAUSE_SECONDS, PAUSE_SECONDS_MAX, until_done
from cometmq.spark.sink_errors import NotExactlyOnce, SinkFenced, SinkStalled
from cometmq.spark.sink_options import OFF, REQUIRE, SinkOptions
from cometmq.spark.sink_request import Request

logger = logging.getLogger("cometmq.spark")

RECOVERIES_MAX: Final = 100

# What is stored, whatever else did not come in time.
_STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }
)
# What was refused before anything was stored, and may be taken a moment later.
_BUSY: Final = frozenset(
    {ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.FLOW_CONTROL}
)
_ROW = struct.Struct(">q16s")
_KEYS: Final = np.dtype([("offset", ">i8"), ("key", ">u8"), ("rest", ">u8")])
_BATCH_PROPERTIES: Final = "WAIT\x01true\x02"
_OFFSET_CHARS: Final = 16

Result = TypeVar("Result")
Connect = Callable[[], BlockingConnection]
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
        self._connection: BlockingConnection | None = None
        self._openings = 0
        self._writer = ""
        self._under_way: dict[int, Request] = {}
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
        try:
            self._send(request)
        except RemotingError as error:
            # It counts as under way: nobody knows how much of it has left.
            request.number = request.number or -1 - len(self._under_way)
            self._under_way[request.number] = request
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
        while request.number:
            assert self._connection is not None
            if recoveries > RECOVERIES_MAX:
                raise SinkStalled(
                    f"{self}: a request was not stored after {RECOVERIES_MAX} new connections"
                )
            try:
                reply = self._connection.receive(request.number)
            except RemotingError as error:
                recoveries += 1
                self._recover(error)
                continue
            if reply.code in _STORED:
                self._stored(request, reply)
            elif reply.code in _BUSY:
                now = self._monotonic()
                deadline = deadline or now + self._options.retry_seconds
                if now + pause > deadline:
                    raise SinkStalled(
                        f"{self} was busy for {self._options.retry_seconds:g} s (retryTimeout): {reply.remark}"
                    )
                self._sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)
                self._forget(request)
                self.submit(request)
            elif reply.code == ResponseCode.ILLEGAL_OPERATION and self.is_tracked:
                # The broker was restarted, or a later attempt has the lane: opening tells.
                recoveries += 1
                self._recover(error_for(reply, self._connection.address))
            else:
                raise error_for(reply, self._connection.address)

    def settle_oldest(self) -> None:
        self.settle(next(iter(self._under_way.values())))

    def settle_all(self) -> None:
        while self._under_way:
            self.settle_oldest()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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
        self._connection = self._connect()
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
        reply = self._call(RequestCode.OPEN_SINK, encode_fields(header))
        if reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            if self._options.exactly_once == REQUIRE:
                raise NotExactlyOnce(
                    f"{self} at {self._connection.address} does not keep rows from being written twice; expected a "
                    "CometMQ broker of this version, or set the option exactlyOnce to auto for at least once"
                )
            self.is_tracked = False
            return None
        if reply.code == ResponseCode.ILLEGAL_OPERATION:
            raise SinkFenced(f"{self}: {reply.remark}")
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, self._connection.address)
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
            reply = self._call(RequestCode.SINK_STORED, encode_fields(header))
            if reply.code != ResponseCode.SUCCESS:
                assert self._connection is not None
                raise error_for(reply, self._connection.address)
            yield reply.body
            first = decode_fields(SinkStoredReply, reply.ext).next_offset

    def _recover(self, cause: CometError) -> None:
        """Connect again and bring what is under way to where it has to be. Raises SinkStalled, SinkFenced."""
        logger.warning(
            "connection of a sink is made anew broker=%s cause=%s", self.broker_name, cause
        )
        self._until_done(self._open_again)

    def _open_again(self) -> Counter[bytes]:
        requests = list(self._under_way.values())
        opened = self._take_lane(is_again=True)
        stored: Counter[bytes] = Counter()
        if opened is not None and requests:
            seen = min(request.seen_offset for request in requests)
            stored = self._read_stored(seen, opened.end_offset, self._acknowledged)
        for request in requests:
            self._forget(request)
            request.leave_out(stored)
        # All of them are noted before the first is sent: a failure in between must not lose one.
        waiting = [request for request in requests if request.elements]
        if opened is not None:
            self._seen_offset = opened.end_offset
            self._acknowledged.clear()
        for index, request in enumerate(waiting):
            request.number = -1 - index
            # What the log holds up to here was left out, and must not be counted a second time.
            request.seen_offset = self._seen_offset
            self._under_way[request.number] = request
        for request in waiting:
            del self._under_way[request.number]
            try:
                self._send(request)
            except RemotingError:
                self._under_way[request.number] = request
                raise
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
        assert self._connection is not None
        request.seen_offset = self._seen_offset
        request.number = self._connection.send(self._command(request))
        self._under_way[request.number] = request

    def _command(self, request: Request) -> Command:
        ext = {
            "a": self._options.group,
            "b": request.wire_topic,
            "c": AUTO_CREATE_TOPIC,
            "d": str(self._options.topic_queues),
            "e": str(request.queue.queue_id),
            "f": "0",
            "g": str(time.time_ns() // 1_000_000),
            "h": "0",
            "i": _BATCH_PROPERTIES,
            "j": "0",
            "k": "false",
            "m": "true",
            "n": self.broker_name,
        }
        if self.is_tracked:
            ext["sink"] = self._writer
        if request.is_batch:
            body = encode_batch(request.elements)
            return Command(RequestCode.SEND_BATCH_MESSAGE, ext, body)
        ((_, body, properties),) = request.elements
        ext["i"] = properties.decode()
        ext["m"] = "false"
        return Command(RequestCode.SEND_MESSAGE_V2, ext, body)

    def _stored(self, request: Request, reply: Command) -> None:
        self._forget(request)
        if not self.is_tracked:
            return
        ids = (reply.ext or {}).get("msgId", "")
        first = int(ids.partition(",")[0][-_OFFSET_CHARS:], 16)
        last = int(ids[-_OFFSET_CHARS:], 16)
        self._acknowledged.append((first, last))
        self._seen_offset = max(self._seen_offset, last)
        oldest = min(
            (other.seen_offset for other in self._under_way.values()), default=self._seen_offset
        )
        self._acknowledged = [span for span in self._acknowledged if span[1] >= oldest]

    def _forget(self, request: Request) -> None:
        self._under_way.pop(request.number, None)
        request.number = 0

    def _call(self, code: RequestCode, ext: dict[str, str]) -> Command:
        assert self._connection is not None
        return self._connection.call(Command(code=code, ext=ext))
