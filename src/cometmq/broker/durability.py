"""When a stored record is safe enough to answer and to show: on disk and at the slaves, as the settings promise it.

    flushDiskType=SYNC_FLUSH   the record is on disk
    brokerRole=SYNC_MASTER     enough brokers have the record; which count is decided in ``replication.replicas``

Both are waited for side by side. The outcome is the code of the answer; the record is stored whatever it is. A bad
outcome at the slaves hides one at the disk, as in RocketMQ.

Consumers see a record when it is on disk, and when the slaves have it or were waited for in vain; see ``store.hidden``.
Under a controller a master acknowledges nothing while it cannot prove that it is one (``is_proven``), and shows nothing
that somebody who may be elected lacks, however long that takes: a new master would have another message in its place.
A slave decides nothing: what it has left from its time as a master is shown when its master turns out to have it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.config_slices import SYNC_MASTER
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.replication.replicas import Outlook, Replicas
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.times.request_times import RequestTimes, Wait
from cometmq.store.read.hidden import Hidden, HiddenGroup
from cometmq.store.watermarks import Watermark, Watermarks

_LATE: Final = {
    int(
        ResponseCode.SERVICE_NOT_AVAILABLE
    ): "this broker is no longer the master, and the next one may not have it",
    int(ResponseCode.FLUSH_DISK_TIMEOUT): "the disk did not answer in time",
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): "the slaves did not answer in time",
}

Answer = Callable[[int], None]
"""Takes the code: 0, FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT; under a controller also
SERVICE_NOT_AVAILABLE, from a master that was replaced."""


class Durability:
    def __init__(
        self,
        live: LiveConfig,
        watermarks: Watermarks,
        hidden: Hidden,
        replicas: Replicas,
        clock: Clock,
        times: RequestTimes,
    ) -> None:
        self._times = times
        self._marks = watermarks
        self._hidden = hidden
        self._replicas = replicas
        self._monotonic = clock.monotonic
        self._looks_after: set[Watermark] = set()
        self._waiting = 0
        self.is_proven: Callable[[], bool] = _always
        """Whether this broker is the master for certain, if it is one. To be set under a controller."""
        hidden.on_hide = self._on_hide
        self._apply(live.current)
        live.on_change(self._apply)

    @property
    def is_awaited(self) -> bool:
        """Whether an answer has to wait for anything."""
        return self._is_sync_flush or self._is_sync_master

    @property
    def waiting(self) -> int:
        """How many requests wait for their answer."""
        return self._waiting

    def require_replicas(self) -> None:
        """Raises Refused when too few brokers follow to store anything."""
        if not self.is_proven():
            raise Refused(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now: this broker cannot reach its controller, and another may be the master",
            )
        if self._is_sync_master and self._copies_min > 1:
            found = 1 + self._replicas.following(self._marks.appended.value)
            if found < self._copies_min:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR,
                    f"in-sync replicas not enough: {found} brokers have the log, minInSyncReplicas={self._copies_min}",
                )

    def when_safe(
        self, end_offset: int, answer: Answer, requests: int = 1, *, request_code: int = 0
    ) -> None:
        """Call ``answer`` when the records up to ``end_offset`` are safe, or when that took too long.

        Args:
            requests: how many it answers. Those that were appended together wait together.
            request_code: of the first of them.
        """
        self._waiting += requests
        started = self._monotonic()

        def settled(code: int) -> None:
            self._waiting -= requests
            answer(code)
            seconds = self._monotonic() - started
            self._times.took(request_code, code, seconds, Wait.DURABLE, count=requests)

        if not self._is_sync_master:
            self._when_flushed(end_offset, settled)
            return
        deadline = self._replica_deadline(end_offset)
        if deadline is None:
            self._when_flushed(end_offset, lambda _: settled(ResponseCode.SLAVE_NOT_AVAILABLE))
            return

        def flushed(code: int) -> None:
            def replicated(is_in_time: bool) -> None:
                if not self.is_proven():
                    # What is here only will be cut. To say that it is stored would be a lie; it has to be sent again.
                    settled(int(ResponseCode.SERVICE_NOT_AVAILABLE))
                else:
                    settled(code if is_in_time else int(ResponseCode.FLUSH_SLAVE_TIMEOUT))

            self._marks.replicated.when(end_offset, replicated, deadline)

        self._when_flushed(end_offset, flushed)

    def reply(self, connection: Connection, command: Command, end_offset: int) -> Command | None:
        """The reply to a request that stored a record and says no more than that; None when it follows later.

        Too few slaves are no reason to ask the client for another try: it would be stored a second time, and nowhere
        else.
        """
        if not self.is_awaited or command.flag & FLAG_ONEWAY:
            return command.reply()

        def answer(code: int) -> None:
            connection.send(command.reply(code, _LATE[code]) if code in _LATE else command.reply())

        self.when_safe(end_offset, answer, request_code=command.code)
        return None

    def replicas_changed(self) -> None:
        """A slave came, went or confirmed more."""
        replicated = self._marks.replicated
        copied_to = self._replicas.copied_to(self._needed(), replicated.next_target)
        if copied_to is not None:
            # A slave that goes may leave a report of a log that has been cut since.
            replicated.advance(min(copied_to, self._marks.appended.value))
        # Whoever was waited for may not be any more.
        self._show()

    def expire(self, now: float) -> None:
        """Answer those who waited too long. To be called now and then."""
        for mark in (self._marks.flushed, self._marks.replicated):
            if mark.waiting:
                mark.expire(now)

    def _when_flushed(self, end_offset: int, answer: Answer) -> None:
        if not self._is_sync_flush:
            answer(0)
            return

        def flushed(is_in_time: bool) -> None:
            answer(0 if is_in_time else int(ResponseCode.FLUSH_DISK_TIMEOUT))

        self._marks.flushed.when(end_offset, flushed, self._monotonic() + self._flush_seconds_max)

    def _on_hide(self, group: HiddenGroup) -> None:
        if self._is_sync_master:
            group.deadline = self._replica_deadline(group.end_offset) or group.deadline
        self._show()

    def _show(self) -> None:
        """Show the messages that are safe by now."""
        flushed, replicated = self._marks.flushed, self._marks.replicated
        while not self._is_slave and (group := self._hidden.first) is not None:
            end_offset = group.end_offset
            if self._is_sync_flush and flushed.value < end_offset:
                self._show_after(flushed, end_offset)
                return
            deadline = None if self._replicas.awaited else group.deadline
            is_awaited = self._is_sync_master and (deadline is None or self._monotonic() < deadline)
            if is_awaited and replicated.value < end_offset:
                self._show_after(replicated, end_offset, deadline)
                return
            self._hidden.show_first()

    def _show_after(self, mark: Watermark, end_offset: int, deadline: float | None = None) -> None:
        if mark in self._looks_after:
            return
        self._looks_after.add(mark)

        def look(_: bool) -> None:
            self._looks_after.discard(mark)
            self._show()

        mark.when(end_offset, look, deadline)

    def _replica_deadline(self, end_offset: int) -> float | None:
        """Until when the slaves are waited for; None when there are too few."""
        needed = self._needed()
        if self._replicas.outlook(needed, end_offset) is Outlook.NOT_AVAILABLE:
            return None
        if needed == 1:
            # Nobody reports who would move the mark.
            self._marks.replicated.advance(end_offset)
        return self._monotonic() + self._replica_seconds_max

    def _needed(self) -> int:
        return self._replicas.needed(self._replication, self._marks.appended.value)

    def _apply(self, config: BrokerConfig) -> None:
        self._is_sync_flush = config.store.flush.is_sync
        self._flush_seconds_max = config.store.flush.sync_timeout_ms / 1000
        self._is_slave = config.identity.is_slave
        self._is_sync_master = config.identity.role == SYNC_MASTER
        self._replication = config.replication
        self._replica_seconds_max = config.replication.wait_ms / 1000
        self._copies_min = config.replication.copies_min
        self._replicas.behind_max = config.replication.behind_bytes_max
        if not self._is_slave:
            # Delays and timers go on delivering for a moment when a master becomes a slave: as hidden as before.
            self._hidden.is_on = self.is_awaited
        self._show()

    def __repr__(self) -> str:
        return f"<Durability waiting={self.waiting} {self._marks}>"


def _always() -> bool:
    return True
