"""How far timers have been delivered, as slaves ask for it: requests 60 and 61."""

from __future__ import annotations

from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.model.topic import DataVersion
from cometmq.protocol.bodies.admin import TimerMetrics
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class TimerRequests:
    def __init__(self, timed: TimedMessages) -> None:
        self._timed = timed

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_TIMER_CHECK_POINT, self.checkpoint)
        dispatcher.add(RequestCode.GET_TIMER_METRICS, self.metrics)

    def checkpoint(self, connection: Connection, command: Command) -> Command:
        content = self._timed.checkpoint()
        if content is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
        return command.reply(body=content)

    def metrics(self, connection: Connection, command: Command) -> Command:
        """Nothing is counted by topic here. RocketMQ's slaves show what they get, and do nothing else with it."""
        return command.reply(body=TimerMetrics(data_version=DataVersion()).encode())
