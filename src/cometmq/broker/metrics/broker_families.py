"""The broker as a whole: what waits in it, what it may do, and how many topics and groups it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cometmq import __version__
from cometmq.base import logs
from cometmq.broker.core import BrokerCore
from cometmq.broker.pop.pop_waiting import PopWaiting
from cometmq.broker.pull.long_polling import LongPolling
from cometmq.monitor.family import Family, LabelValues, Value, counter, gauge, single

_PROCESSORS: Final = (
    "send",
    "async_put",
    "pull",
    "ack",
    "query_message",
    "client_manager",
    "heartbeat",
    "lite_pull",
    "transaction",
    "consumer_manager",
    "admin",
    "reply",
)


class BrokerFamilies:
    def __init__(self, core: BrokerCore, pulls: LongPolling, pops: PopWaiting) -> None:
        self._core = core
        self._pulls = pulls
        self._pops = pops

    @property
    def families(self) -> Sequence[Family]:
        core = self._core
        return (
            gauge("rocketmq_processor_watermark", ("processor",), self._watermarks),
            gauge(
                "rocketmq_broker_permission",
                (),
                single(lambda: float(core.live.current.topics.permission)),
            ),
            gauge("rocketmq_topic_number", (), single(lambda: float(len(core.topics)))),
            gauge("rocketmq_consumer_group_number", (), single(lambda: float(len(core.groups)))),
            gauge(
                "cometmq_broker_info",
                ("role", "version"),
                lambda: [((core.live.current.identity.role, __version__), 1.0)],
                text="What the broker is now",
            ),
            gauge(
                "cometmq_broker_is_master",
                (),
                single(lambda: float(not core.live.current.identity.is_slave)),
                text="Whether it is a master by its settings, or by the word of its controller",
            ),
            gauge(
                "cometmq_parked_requests",
                ("kind",),
                lambda: [(("pop",), float(len(self._pops))), (("pull",), float(len(self._pulls)))],
                text="Pulls and pops that wait for a message",
            ),
            gauge(
                "cometmq_sends_waiting",
                (),
                single(lambda: float(core.durability.waiting)),
                text="Sends whose answer waits for the disk or for slaves",
            ),
            counter(
                "cometmq_put_failed_total",
                (),
                single(lambda: float(core.stats.put_failed_count)),
                text="Messages that the store did not take",
            ),
            counter(
                "cometmq_log_lines_left_out_total",
                (),
                single(lambda: float(logs.left_out_count())),
                text="Log lines left out because there were too many of their kind",
            ),
        )

    def _watermarks(self) -> list[tuple[LabelValues, Value]]:
        """Requests are handled as they come; what waits are sends, for disk or slaves."""
        waiting = {"send": self._core.durability.waiting}
        return [((name,), float(waiting.get(name, 0))) for name in _PROCESSORS]
