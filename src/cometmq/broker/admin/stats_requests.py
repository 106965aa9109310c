"""Figures of the whole broker: requests 28 and 315."""

from __future__ import annotations

from cometmq.broker.admin.runtime_info import RuntimeInfo
from cometmq.broker.broker_stats import BrokerStats, Window
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.bodies.stats import BrokerStatsData, BrokerStatsItem
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import ViewBrokerStatsHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class StatsAdmin:
    def __init__(self, *, stats: BrokerStats, runtime: RuntimeInfo) -> None:
        self._stats = stats
        self._runtime = runtime

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_BROKER_RUNTIME_INFO, self.runtime_info)
        dispatcher.add(RequestCode.VIEW_BROKER_STATS_DATA, self.view)

    def runtime_info(self, connection: Connection, command: Command) -> Command:
        return command.reply(body=KVTable(table=self._runtime.table()).encode())

    def view(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(ViewBrokerStatsHeader, command.ext)
        found = self._stats.view(header.stats_name, header.stats_key)
        if found is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"The stats <{header.stats_name}> <{header.stats_key}> not exist",
            )
        body = BrokerStatsData(
            stats_minute=_item(found.minute),
            stats_hour=_item(found.hour),
            stats_day=_item(found.day),
        )
        return command.reply(body=body.encode())


def _item(window: Window) -> BrokerStatsItem:
    return BrokerStatsItem(sum=window.sum, tps=window.tps, avgpt=window.average)
