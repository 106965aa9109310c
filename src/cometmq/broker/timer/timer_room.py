"""The root of the room for messages with a time of delivery: what keeps them, and requests about them."""

from __future__ import annotations

from cometmq.broker.core import BrokerCore
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.timer.recall_processor import RecallProcessor
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.timer.timer_requests import TimerRequests


class TimerRoom:
    def __init__(self, core: BrokerCore) -> None:
        self.timed = TimedMessages(
            live=core.live,
            store=core.store,
            stats=core.stats,
            files=core.files,
            clock=core.clock,
            loop=core.loop,
            restore_topic=core.creation.restore,
            system_topic=core.creation.system_topic,
        )
        self._recalls = RecallProcessor(
            live=core.live,
            store=core.store,
            topics=core.topics,
            timed=self.timed,
            clock=core.clock,
        )
        self._requests = TimerRequests(self.timed)

    def register(self, ports: RequestPorts) -> None:
        ports.serve(self._recalls, self._requests)
