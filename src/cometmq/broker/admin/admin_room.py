"""The root of the room for operators: requests about topics, groups, positions, figures, settings and upkeep.

What operators ask about connected clients is in ``clients``, about single transactions in ``transaction``.
"""

from __future__ import annotations

from collections.abc import Callable

from cometmq.broker.admin.admin_replies import Saved
from cometmq.broker.admin.consume_stats import ConsumeStatsAdmin
from cometmq.broker.admin.group_requests import GroupAdmin
from cometmq.broker.admin.maintenance_requests import MaintenanceAdmin
from cometmq.broker.admin.offset_requests import OffsetAdmin
from cometmq.broker.admin.queue_requests import QueueAdmin
from cometmq.broker.admin.reset_offset import ResetOffsetAdmin
from cometmq.broker.admin.runtime_info import RuntimeInfo
from cometmq.broker.admin.stats_requests import StatsAdmin
from cometmq.broker.admin.topic_requests import Announce, TopicAdmin
from cometmq.broker.config.config_requests import ConfigAdmin
from cometmq.broker.core import BrokerCore
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.schedule.schedule import Delays
from cometmq.broker.send.flow_control import FlowControl


class AdminRoom:
    """
    Args:
        delays: tells how far the delay levels are delivered.
        flow: tells how busy the broker is.
        wake: runs the pulls again that wait at a topic's queue for a group.
        announce: tells the name servers of changed topics and returns when they know, or did not answer.
        saved: returns once every change made to topics and groups so far is on disk.
    """

    def __init__(
        self,
        core: BrokerCore,
        *,
        delays: Delays,
        flow: FlowControl,
        wake: Callable[[str, int, str], None],
        announce: Announce,
        saved: Saved,
    ) -> None:
        self._topics = TopicAdmin(
            live=core.live,
            topics=core.topics,
            offsets=core.offsets,
            store=core.store,
            stats=core.stats,
            announce=announce,
            saved=saved,
        )
        self._groups = GroupAdmin(
            live=core.live,
            groups=core.groups,
            offsets=core.offsets,
            stats=core.stats,
            saved=saved,
        )
        self._offsets = OffsetAdmin(
            live=core.live,
            address=core.address,
            offsets=core.offsets,
            delays=delays,
            topics=core.topics,
            clients=core.clients,
            store=core.store,
        )
        self._resets = ResetOffsetAdmin(
            live=core.live,
            topics=core.topics,
            groups=core.groups,
            offsets=core.offsets,
            clients=core.clients,
            store=core.store,
            wake=wake,
        )
        self._lags = ConsumeStatsAdmin(
            broker_name=core.broker_name,
            address=core.address,
            topics=core.topics,
            groups=core.groups,
            offsets=core.offsets,
            clients=core.clients,
            store=core.store,
            stats=core.stats,
            clock=core.clock,
        )
        self._queues = QueueAdmin(clients=core.clients, filters=core.filters, store=core.store)
        runtime = RuntimeInfo(
            live=core.live,
            stats=core.stats,
            store=core.store,
            durability=core.durability,
            delays=delays,
            flow=flow,
            clock=core.clock,
            files=core.files,
            reached=core.reached,
        )
        self._stats = StatsAdmin(stats=core.stats, runtime=runtime)
        self._settings = ConfigAdmin(core.live)
        self._upkeep = MaintenanceAdmin(live=core.live, store=core.store, topics=core.topics)

    def register(self, ports: RequestPorts) -> None:
        ports.serve(
            self._topics,
            self._groups,
            self._offsets,
            self._resets,
            self._lags,
            self._queues,
            self._stats,
            self._settings,
            self._upkeep,
        )
