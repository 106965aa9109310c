"""What the broker says about itself: the table of GET_BROKER_RUNTIME_INFO, which brokerStatus and clusterList print.

RocketMQ's figures about its thread pools are answered with what takes their place here: a send "waits in the queue"
while its reply waits for the disk, and the head of every queue waits as long as the event loop is late.
"""

from __future__ import annotations

from typing import Final

from cometmq.base import logs
from cometmq.base.ports import Clock, Files
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.schedule.schedule import Delays
from cometmq.broker.send.flow_control import FlowControl
from cometmq.protocol.command import VERSION, VERSION_NAME
from cometmq.remoting.bounds.reached import Reached
from cometmq.store.message_store import MessageStore

# Capacities of queues that do not exist here; tools divide by them.
_QUERY_QUEUE_CAPACITY: Final = 20_000
_TRANSACTION_QUEUE_CAPACITY: Final = 100_000
_ACK_QUEUE_CAPACITY: Final = 100_000


class RuntimeInfo:
    def __init__(
        self,
        *,
        live: LiveConfig,
        stats: BrokerStats,
        store: MessageStore,
        durability: Durability,
        delays: Delays,
        flow: FlowControl,
        clock: Clock,
        files: Files,
        reached: Reached,
    ) -> None:
        self._live = live
        self._stats = stats
        self._store = store
        self._durability = durability
        self._delays = delays
        self._flow = flow
        self._clock = clock
        self._files = files
        self._reached = reached

    def table(self) -> dict[str, str]:
        """All figures as texts, in the order of the subjects."""
        figures: dict[str, object] = {
            **self._identity(),
            **self._puts(),
            **self._gets(),
            **self._disk(),
            **self._queues(),
            **self._delay_levels(),
            **self._bounds(),
        }
        return {key: str(value) for key, value in figures.items()}

    def _identity(self) -> dict[str, object]:
        boot_ms = self._stats.boot_ms
        return {
            "bootTimestamp": boot_ms,
            "runtime": duration_text(self._clock.wall_ms() - boot_ms),
            "brokerVersionDesc": VERSION_NAME,
            "brokerVersion": VERSION,
            # Whether it delivers delayed messages and checks transactions.
            "brokerActive": str(not self._live.current.identity.is_slave).lower(),
            "startAcceptSendRequestTimeStamp": self._live.current.flow.accept_sends_from_ms,
        }

    def _puts(self) -> dict[str, object]:
        stats = self._stats
        put = stats.put
        return {
            "putMessageEntireTimeMax": stats.put_max_ms,
            "putMessageTimesTotal": put.count,
            "putMessageFailedTimes": stats.put_failed_count,
            "putMessageSizeTotal": put.size_bytes,
            "putMessageAverageSize": put.size_bytes / put.count if put.count else 0.0,
            "putMessageDistributeTime": stats.put_distribution(),
            "putTps": stats.put_tps(),
            "putLatency99": f"{stats.put_latency_ms(0.99):.2f}",
            "putLatency999": f"{stats.put_latency_ms(0.999):.2f}",
            "msgPutTotalYesterdayMorning": stats.mornings.put_yesterday,
            "msgPutTotalTodayMorning": stats.mornings.put_today,
            "msgPutTotalTodayNow": put.count,
        }

    def _gets(self) -> dict[str, object]:
        stats = self._stats
        transferred = stats.get_transferred_tps()
        return {
            "getMessageEntireTimeMax": stats.get_max_ms,
            "getFoundTps": stats.get_found_tps(),
            "getMissTps": stats.get_miss_tps(),
            "getTotalTps": stats.get_total_tps(),
            # Each version's tools read their own spelling.
            "getTransferedTps": transferred,
            "getTransferredTps": transferred,
            "msgGetTotalYesterdayMorning": stats.mornings.get_yesterday,
            "msgGetTotalTodayMorning": stats.mornings.get_today,
            "msgGetTotalTodayNow": stats.get_found.count,
        }

    def _disk(self) -> dict[str, object]:
        store = self._store
        log_path = self._live.current.store.log_path
        total_bytes, free_bytes = self._files.space(log_path)
        return {
            "earliestMessageTimeStamp": store.earliest_store_time(),
            "commitLogMinOffset": store.min_physical,
            "commitLogMaxOffset": store.max_physical,
            "commitLogDiskRatio": round(store.log_disk_ratio, 4),
            f"commitLogDiskRatio_{log_path}": round(store.log_disk_ratio, 4),
            "consumeQueueDiskRatio": round(store.queue_disk_ratio, 4),
            "commitLogDirCapacity": f"Total : {size_text(total_bytes)}, Free : {size_text(free_bytes)}.",
            "damagedRecords": store.damages.found_count,
            "healedRecords": store.damages.healed_count,
            "dispatchMaxBuffer": 0,
            "dispatchBehindBytes": store.dispatch_behind_bytes,
            "remainHowManyDataToFlush": size_text(store.flush_behind_bytes),
            "remainTransientStoreBufferNumbs": max(self._flow.unflushed_files_left, 0),
            # An append is one step of the loop that also runs this: none is under way.
            "pageCacheLockTimeMills": 0,
        }

    def _queues(self) -> dict[str, object]:
        config = self._live.current
        waits: dict[str, tuple[int, int]] = {
            "send": (self._durability.waiting, config.flow.sends_waiting_max),
            "pull": (0, config.polling.parked_max),
            "litePull": (0, config.polling.parked_max),
            "query": (0, _QUERY_QUEUE_CAPACITY),
            "ack": (0, _ACK_QUEUE_CAPACITY),
        }
        figures: dict[str, object] = {}
        for name, (size, capacity) in waits.items():
            figures[f"{name}ThreadPoolQueueSize"] = size
            figures[f"{name}ThreadPoolQueueCapacity"] = capacity
            figures[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = self._flow.lag_ms
        figures |= {
            "EndTransactionQueueSize": 0,
            "EndTransactionThreadPoolQueueCapacity": _TRANSACTION_QUEUE_CAPACITY,
            "timerReadBehind": 0,
            "timerOffsetBehind": 0,
            "timerCongestNum": 0,
            "timerEnqueueTps": 0.0,
            "timerDequeueTps": 0.0,
        }
        return figures

    def _bounds(self) -> dict[str, object]:
        """As RocketMQ's metrics: what has not happened yet has no figure."""
        left_out = logs.left_out_count()
        return {
            **{
                f"boundReached_{bound}": count
                for bound, count in sorted(self._reached.counts.items())
            },
            **({"logLinesLeftOut": left_out} if left_out else {}),
        }

    def _delay_levels(self) -> dict[str, object]:
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{end}"
            for level, (offset, end) in self._delays.positions().items()
        }


def duration_text(milliseconds: int) -> str:
    """``[ 0 days, 0 hours, 5 minutes, 17 seconds ]``"""
    minutes, seconds = divmod(max(milliseconds, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def size_text(size_bytes: int) -> str:
    """``406 B``, ``68.8 GiB``"""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    size = float(size_bytes)
    for unit in "KMGTP":
        size /= 1024
        if size < 1024 or unit == "P":
            break
    return f"{size:.1f} {unit}iB"
