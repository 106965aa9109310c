"""When the broker says that it is busy, and why. Pure decisions, fed with what the event loop measures.

RocketMQ's requests wait in queues before thread pools, and it refuses those that waited too long. Here requests wait
for the one event loop instead, so how late the loop's own timer fires is how long a request has waited. One late timer
is a stall that is over, and what piled up behind it is better served than refused, since Java's clients do not repeat a
send that was refused so; two in a row mean that there is more to do than can be done. Sends whose reply waits for the
disk take the place of RocketMQ's full send queue.
"""

from __future__ import annotations

from typing import Final

from cometmq.broker.config_slices import FlowControlConfig
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection

_SENDS: Final = frozenset(
    {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
)


class FlowControl:
    """``guard`` stands before the processors; while the broker is calm it costs one test."""

    def __init__(self, config: FlowControlConfig) -> None:
        self._config = config
        self._lag_ms = 0
        self._last_lag_ms = 0
        self._slow_append_ms = 0
        self._waiting = 0
        self.is_calm = True

    def apply(self, config: FlowControlConfig) -> None:
        """Settings changed."""
        self._config = config
        self._judge()

    def measured(self, lag_ms: float, replies_waiting: int) -> None:
        """The loop's timer fired so much too late, while so many replies wait for the disk."""
        self._lag_ms = min(int(lag_ms), self._last_lag_ms)
        self._last_lag_ms = int(lag_ms)
        self._waiting = replies_waiting
        # The loop has come round: what stood right behind a slow append has been answered.
        self._slow_append_ms = 0
        self._judge()

    def append_took(self, milliseconds: float) -> None:
        """An append that took longer than ``osPageCacheBusyTimeOutMills``: what waited behind it is refused."""
        if milliseconds > self._config.page_cache_busy_ms:
            self._slow_append_ms = int(milliseconds)
            self._judge()

    def guard(self, connection: Connection, command: Command) -> Command | None:
        """The refusal of a request, or None to let it pass."""
        if self.is_calm:
            return None
        text = self.refusal(command.code)
        return None if text is None else command.reply(ResponseCode.SYSTEM_BUSY, text)

    def refusal(self, code: int) -> str | None:
        """Why a request of this code is refused now."""
        config = self._config
        if not config.fast_failure:
            return None
        if code in _SENDS:
            if self._slow_append_ms:
                return (
                    "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, "
                    f"period in queue: {self._slow_append_ms}ms, size of queue: {self._waiting}"
                )
            if self._lag_ms > config.send_wait_ms_max:
                return self._waited()
        elif code in (RequestCode.PULL_MESSAGE, RequestCode.BULK_PULL):
            if self._lag_ms > config.pull_wait_ms_max:
                return self._waited()
        elif code == RequestCode.LITE_PULL_MESSAGE:
            if self._lag_ms > config.lite_pull_wait_ms_max:
                return self._waited()
        elif code == RequestCode.HEART_BEAT and self._lag_ms > config.heartbeat_wait_ms_max:
            return self._waited()
        return None

    def overload(self, replies_waiting: int) -> str | None:
        """Why a send that would have to wait for the disk is refused, or None."""
        if replies_waiting < self._config.sends_waiting_max:
            return None
        return "[OVERLOAD]system busy, start flow control for a while"

    def _waited(self) -> str:
        return (
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            f"period in queue: {self._lag_ms}ms, size of queue: {self._waiting}"
        )

    def _judge(self) -> None:
        config = self._config
        shortest = min(
            config.send_wait_ms_max,
            config.pull_wait_ms_max,
            config.lite_pull_wait_ms_max,
            config.heartbeat_wait_ms_max,
        )
        self.is_calm = not config.fast_failure or (
            self._lag_ms <= shortest and not self._slow_append_ms
        )

    @property
    def lag_ms(self) -> int:
        """How late the loop was last."""
        return self._last_lag_ms

    def __repr__(self) -> str:
        state = "calm" if self.is_calm else "busy"
        return f"<FlowControl {state} lag={self._lag_ms}ms waiting={self._waiting}>"
