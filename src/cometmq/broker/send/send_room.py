"""The root of the room where messages come in: sends, messages given back, replies to requests, and flow control.

What is delivered later goes to the rooms that wait for it; those are the doors that this one needs.
"""

from __future__ import annotations

from cometmq.broker.access.may_touch import MayTouch
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.core import BrokerCore
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.send.flow_control import FlowControl
from cometmq.broker.send.reply_processor import ReplyProcessor
from cometmq.broker.send.send_back_processor import SendBackProcessor
from cometmq.broker.send.send_processor import SendProcessor
from cometmq.broker.sink.sink_room import SinkRoom
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.transaction.transactions import Transactions


class SendRoom:
    def __init__(
        self,
        core: BrokerCore,
        *,
        schedule: Schedule,
        timed: TimedMessages,
        transactions: Transactions,
        sinks: SinkRoom,
        may_touch: MayTouch,
    ) -> None:
        config = core.live.current
        self.flow = FlowControl(
            config.flow, log_file_bytes=config.store.log.file_bytes, times=core.times
        )
        core.live.on_change(self._apply)
        self._sends = SendProcessor(
            live=core.live,
            store=core.store,
            durability=core.durability,
            schedule=schedule,
            transactions=transactions,
            timed=timed,
            store_host=core.store_host,
            topics=core.topics,
            creation=core.creation,
            stats=core.stats,
            flow=self.flow,
            clock=core.clock,
            sinks=sinks.record,
            sink_used=sinks.keeper.used,
        )
        self._send_backs = SendBackProcessor(
            live=core.live,
            store=core.store,
            schedule=schedule,
            clients=core.clients,
            creation=core.creation,
            stats=core.stats,
            durability=core.durability,
            may_touch=may_touch,
        )
        self._replies = ReplyProcessor(
            live=core.live,
            sends=self._sends,
            store=core.store,
            store_host=core.store_host,
            clients=core.clients,
            clock=core.clock,
        )

    def register(self, ports: RequestPorts) -> None:
        ports.guard(self.flow.guard, self.flow.is_idle)
        ports.serve(self._sends, self._send_backs, self._replies)

    def _apply(self, config: BrokerConfig) -> None:
        self.flow.apply(config.flow)
