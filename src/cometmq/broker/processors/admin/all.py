"""All admin processors, made from the broker's parts and put before the dispatcher."""

from __future__ import annotations

from collections.abc import Callable

from cometmq.base.ports import Clock, Files
from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.consumer_filters import ConsumerFilters
from cometmq.broker.flow_control import FlowControl
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.processors.admin.assignments import AssignmentAdmin, QueuesOf
from cometmq.broker.processors.admin.common import Saved
from cometmq.broker.processors.admin.config import ConfigAdmin
from cometmq.broker.processors.admin.connections import ConnectionAdmin
from cometmq.broker.processors.admin.consume_stats import ConsumeStatsAdmin
from cometmq.broker.processors.admin.forwarding import ForwardingAdmin
from cometmq.broker.processors.admin.groups import GroupAdmin
from cometmq.broker.processors.admin.maintenance import MaintenanceAdmin
from cometmq.broker.processors.admin.offsets import OffsetAdmin
from cometmq.broker.processors.admin.queues import QueueAdmin
from cometmq.broker.processors.admin.reset_offset import ResetOffsetAdmin
from cometmq.broker.processors.admin.stats import StatsAdmin
from cometmq.broker.processors.admin.topics import Announce, TopicAdmin
from cometmq.broker.request_modes import RequestModes
from cometmq.broker.runtime_info import RuntimeInfo
from cometmq.broker.schedule.schedule import Delays
from cometmq.broker.stats import BrokerStats
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable


def register_admin(
    dispatcher: Dispatcher,
    *,
    address: str,
    live: LiveConfig,
    store: MessageStore,
    topics: TopicTable,
    groups: GroupTable,
    offsets: OffsetTable,
    delays: Delays,
    modes: RequestModes,
    clients: ClientRegistry,
    filters: ConsumerFilters,
    stats: BrokerStats,
    flow: FlowControl,
    clock: Clock,
    files: Files,
    announce: Announce,
    saved: Saved,
    queues_of: QueuesOf,
    wake: Callable[[str, int, str], None],
) -> None:
    """Put a handler for every admin request into ``dispatcher``.

    Args:
        address: the advertised ``ip:port`` of this broker.
        announce: tells the name servers of changed topics and returns when they know, or did not answer.
        saved: returns once every change made to topics and groups so far is on disk.
        queues_of: the readable queues of a topic on all brokers, empty when nobody knows the topic.
        wake: runs the pulls again that wait at a topic's queue for a group.
    """
    identity = live.current.identity
    name = identity.broker_name
    runtime = RuntimeInfo(
        live=live,
        stats=stats,
        store=store,
        delays=delays,
        flow=flow,
        clock=clock,
        files=files,
    )
    TopicAdmin(
        live=live,
        topics=topics,
        offsets=offsets,
        store=store,
        stats=stats,
        announce=announce,
        saved=saved,
    ).register(dispatcher)
    GroupAdmin(live=live, groups=groups, offsets=offsets, stats=stats, saved=saved).register(
        dispatcher
    )
    OffsetAdmin(
        address=address,
        offsets=offsets,
        delays=delays,
        topics=topics,
        clients=clients,
        store=store,
    ).register(dispatcher)
    ConsumeStatsAdmin(
        broker_name=name,
        address=address,
        topics=topics,
        groups=groups,
        offsets=offsets,
        clients=clients,
        store=store,
        stats=stats,
        clock=clock,
    ).register(dispatcher)
    ResetOffsetAdmin(
        live=live,
        topics=topics,
        groups=groups,
        offsets=offsets,
        clients=clients,
        store=store,
        wake=wake,
    ).register(dispatcher)
    ForwardingAdmin(broker_name=name, clients=clients, store=store).register(dispatcher)
    ConnectionAdmin(clients).register(dispatcher)
    QueueAdmin(clients=clients, filters=filters, store=store).register(dispatcher)
    AssignmentAdmin(
        topics=topics, clients=clients, modes=modes, saved=saved, queues_of=queues_of
    ).register(dispatcher)
    StatsAdmin(stats=stats, runtime=runtime).register(dispatcher)
    ConfigAdmin(live).register(dispatcher)
    MaintenanceAdmin(identity=identity, store=store, topics=topics).register(dispatcher)
