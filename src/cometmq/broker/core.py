"""What every room of the broker stands on: settings, clock, disk, store, tables, clients, figures.

``open_core`` builds it once in a broker's life, before the rooms. It decides nothing and starts nothing: threads and
tasks are up to ``server``. A room's root takes the core and hands each of its parts only what that part uses.
"""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack
from dataclasses import dataclass, field

from cometmq.base.errors import ConfigError, CorruptFile, DiskFull
from cometmq.base.ports import Clock, EventLoop, Files
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.clients.request_modes import RequestModes
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.filters.consumer_filters import ConsumerFilters
from cometmq.broker.pull.master_presence import MasterPresence
from cometmq.broker.replication.replicas import Replicas
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.address import join_address, pack_host
from cometmq.model.bloom import bloom_filter
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.store.files.store_directory import UNFINISHED_RESTORE
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.store_config import StoreConfig
from cometmq.store.watermarks import Schedule

log = logging.getLogger("cometmq.broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCore:
    live: LiveConfig
    clock: Clock
    files: Files
    loop: EventLoop
    address: str
    """What clients are told to connect to."""
    store_host: bytes
    """The same, packed, as every record carries it."""
    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    modes: RequestModes
    filters: ConsumerFilters
    clients: ClientRegistry
    creation: TopicCreation
    stats: BrokerStats
    replicas: Replicas
    """The slaves that are connected, and what they have."""
    durability: Durability
    reached: Reached
    """How often bounds were reached."""
    times: RequestTimes
    """How long requests take."""
    master: MasterPresence = field(default_factory=MasterPresence)
    """Means something at a slave only."""

    @property
    def broker_name(self) -> str:
        return self.live.current.identity.broker_name


def open_core(
    live: LiveConfig,
    *,
    clock: Clock,
    files: Files,
    loop: EventLoop,
    port: int,
    reached: Reached | None = None,
    times: RequestTimes | None = None,
    schedule: Schedule | None = None,
) -> BrokerCore:
    """Load the store and the tables. The store's threads are not running yet.

    Args:
        port: the broker's own, which every record carries.
        reached, times: those of the broker's ports.
        schedule: brings a callback from a flush thread to the event loop; see ``store.watermarks``.

    Raises:
        ConfigError: the broker's address is no address.
        StoreError, CorruptFile: the store cannot be opened; nothing in it was changed.
    """
    config = live.current
    reached = reached or Reached()
    times = times or RequestTimes()
    directory = config.store.path("config")
    store_host = pack_host(_ip_of(config.identity.ip1), port)
    bits = config.filters
    filters = ConsumerFilters(
        directory,
        files,
        clock,
        bloom_filter(bits.bloom_expected_count, bits.bloom_error_percent),
        bits.limits,
        reached,
    )
    # Before the store, which asks them about messages that it enters into their queues again.
    filters.load()

    def filter_bits(topic: str, properties: str) -> bytes:
        return filters.bits_of(topic, properties) if live.current.filters.calculates_bits else b""

    store = MessageStore(
        config.store,
        store_host=store_host,
        files=files,
        clock=clock,
        schedule=schedule,
        filter_bits=filter_bits,
    )
    filters.newest_ms = lambda: store.last_timestamp
    refuse_unfinished(config.store, files)
    store.load()
    with ExitStack() as undo:
        undo.callback(store.close)
        topics = TopicTable(directory, files, clock)
        groups = GroupTable(directory, files, clock)
        offsets = OffsetTable(directory, files, clock)
        modes = RequestModes(directory, files)
        for table in (topics, groups, offsets, modes):
            table.load()
        cut_offsets(offsets, store)
        undo.pop_all()
    creation = TopicCreation(topics, groups, config.topics, clock=clock)

    def apply(changed: BrokerConfig) -> None:
        store.apply(changed.store)
        creation.apply(changed.topics)

    live.on_change(apply)
    replicas = Replicas(config.replication.behind_bytes_max)
    return BrokerCore(
        live=live,
        clock=clock,
        files=files,
        loop=loop,
        address=join_address(config.identity.ip1, port),
        store_host=store_host,
        store=store,
        topics=topics,
        groups=groups,
        offsets=offsets,
        modes=modes,
        filters=filters,
        clients=ClientRegistry(clock),
        creation=creation,
        stats=BrokerStats(clock, cluster=config.identity.cluster_name),
        replicas=replicas,
        reached=reached,
        times=times,
        durability=Durability(live, store.watermarks, store.hidden, replicas, clock, times),
    )


def refuse_unfinished(config: StoreConfig, files: Files) -> None:
    """Raises CorruptFile: the store is half restored."""
    marker = config.path(UNFINISHED_RESTORE)
    if files.exists(marker):
        raise CorruptFile(
            marker,
            "a restore has not finished",
            "Repeat `cometmq backup restore` into this directory, which begins anew",
        )


def cut_offsets(offsets: OffsetTable, store: MessageStore) -> None:
    """Positions of groups that are ahead of their queue go back to its end."""
    if cut := offsets.cut(store.max_offset):
        log.warning("positions of groups were ahead of the log count=%d", cut)
        try:
            # At once: when the log has grown, nobody could tell any more.
            offsets.save_if_changed()
        except DiskFull as error:
            # Then the log does not grow either; it is tried again every few seconds.
            log.error("positions of groups not saved reason=%s", error)


def _ip_of(host: str) -> str:
    """The records hold an address, not a name."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise ConfigError(f"brokerIP1={host} is no address of any machine: {error}") from None
