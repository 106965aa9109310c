"""When the broker says that it is busy, and why. Pure decisions, fed with what the event loop measures.

RocketMQ's requests wait in queues before thread pools, and it refuses those that waited too long. Here requests wait
for the one event loop instead, so how late the loop's own timer fires is how long a request has waited. One late timer
is a stall that is over, and what piled up behind it is better served than refused, since Java's clients do not repeat a
send that was refused so; two in a row mean that there is more to do than can be done. Sends whose reply waits for the
disk take the place of RocketMQ's full send queue, and bytes that are not on disk yet that of its buffers.

| the answer begins with | as long as                                                                           |
| ---------------------- | ------------------------------------------------------------------------------------ |
| [PCBUSY_CLEAN_QUEUE]   | sends stood behind an append that took longer than ``osPageCacheBusyTimeOutMills``   |
| [TIMEOUT_CLEAN_QUEUE]  | requests wait longer than ``waitTimeMillsIn...Queue``                                |
| [REJECTREQUEST]        | ``transientStorePoolSize`` log files are not on disk, with transientStorePoolEnable  |
| [OVERLOAD]             | ``sendThreadPoolQueueCapacity`` sends wait for the disk, and would one more          |

All have the code SYSTEM_BUSY.
"""

from __future__ import annotations

from typing import Final

from cometmq.broker.config.config_slices import FlowControlConfig
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.times.request_times import RequestTimes

_SENDS: Final = frozenset(
    {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
)
NO_LIMIT: Final = 2**31 - 1
"""What RocketMQ says of its buffers when it does not use them."""


class FlowControl:
    """``guard`` stands before the processors; while the broker is calm it costs one test."""

    def __init__(
        self,
        config: FlowControlConfig,
        *,
        log_file_bytes: int = 1 << 30,
        times: RequestTimes | None = None,
    ) -> None:
        self._times = times or RequestTimes()
        self._config = config
        self._log_file_bytes = log_file_bytes
        self._patience = _patience(config)
        self._unflushed_bytes = 0
        self._lag_ms = 0
        self._last_lag_ms = 0
        self._slow_append_ms = 0
        self._waiting = 0
        self.is_calm = True

    def apply(self, config: FlowControlConfig) -> None:
        """Settings changed."""
        self._config = config
        self._patience = _patience(config)
        self._judge()

    def measured(self, lag_ms: float, replies_waiting: int, unflushed_bytes: int = 0) -> None:
        """The loop's timer fired so much too late, while so many replies and bytes wait for the disk."""
        self._lag_ms = min(int(lag_ms), self._last_lag_ms)
        self._last_lag_ms = int(lag_ms)
        self._waiting = replies_waiting
        self._unflushed_bytes = unflushed_bytes
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
        if text is None:
            return None
        self._times.refuse(command.code, text[1 : text.index("]")].lower())
        return command.reply(ResponseCode.SYSTEM_BUSY, text)

    def is_idle(self) -> bool:
        """Whether the guard lets everything pass."""
        return self.is_calm

    def refusal(self, code: int) -> str | None:
        """Why a request of this code is refused now."""
        is_send = code in _SENDS
        if is_send and self.unflushed_files_left <= 0:
            return (
                "[REJECTREQUEST]system busy, start flow control for a while, "
                f"bytes not on disk: {self._unflushed_bytes}"
            )
        if not self._config.fast_failure:
            return None
        if is_send and self._slow_append_ms:
            return (
                "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, "
                f"period in queue: {self._slow_append_ms}ms, size of queue: {self._waiting}"
            )
        if self._lag_ms > self._patience.get(code, self._lag_ms):
            return (
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
                f"period in queue: {self._lag_ms}ms, size of queue: {self._waiting}"
            )
        return None

    @property
    def unflushed_files_left(self) -> int:
        """How many log files more may wait for the disk; ``NO_LIMIT`` when that is not bounded."""
        if not self._config.has_unflushed_limit:
            return NO_LIMIT
        return self._config.unflushed_files_max - self._unflushed_bytes // self._log_file_bytes

    def overload(self, replies_waiting: int) -> str | None:
        """Why a send that would have to wait for the disk is refused, or None."""
        if replies_waiting < self._config.sends_waiting_max:
            return None
        return "[OVERLOAD]system busy, start flow control for a while"

    def _judge(self) -> None:
        is_quick = not self._config.fast_failure or (
            self._lag_ms <= min(self._patience.values()) and not self._slow_append_ms
        )
        self.is_calm = is_quick and self.unflushed_files_left > 0

    @property
    def lag_ms(self) -> int:
        """How late the loop was last."""
        return self._last_lag_ms

    def __repr__(self) -> str:
        state = "calm" if self.is_calm else "busy"
        return f"<FlowControl {state} lag={self._lag_ms}ms waiting={self._waiting}>"


def _patience(config: FlowControlConfig) -> dict[int, int]:
    """By request code: how many milliseconds a request may wait. Others are served however late it is."""
    return {
        **dict.fromkeys(_SENDS, config.send_wait_ms_max),
        RequestCode.PULL_MESSAGE: config.pull_wait_ms_max,
        RequestCode.BULK_PULL: config.pull_wait_ms_max,
        RequestCode.POP_MESSAGE: config.pull_wait_ms_max,
        RequestCode.LITE_PULL_MESSAGE: config.lite_pull_wait_ms_max,
        RequestCode.HEART_BEAT: config.heartbeat_wait_ms_max,
        RequestCode.END_TRANSACTION: config.transaction_wait_ms_max,
        RequestCode.ACK_MESSAGE: config.ack_wait_ms_max,
        RequestCode.BATCH_ACK_MESSAGE: config.ack_wait_ms_max,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME: config.ack_wait_ms_max,
    }
