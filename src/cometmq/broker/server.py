"""The composition root of a broker: builds the parts in order, and stops them in the reverse order.

Reading it top to bottom tells what a broker consists of and what each part knows. Nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from cometmq.base.descriptors import DescriptorShares
from cometmq.base.errors import ConfigError, DiskFull
from cometmq.base.ports import Clock, Files
from cometmq.base.system import SystemClock, SystemFiles
from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.cluster_view import ClusterView
from cometmq.broker.config import BrokerConfig
from cometmq.broker.consumer_filters import ConsumerFilters
from cometmq.broker.consumer_notifier import ConsumerNotifier
from cometmq.broker.filter_functions.pool import FilterFunctions
from cometmq.broker.flow_control import FlowControl
from cometmq.broker.housekeeping import Housekeeping
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.long_polling import LongPolling
from cometmq.broker.pop.service import PopService
from cometmq.broker.pop.waiting import PopWaiting
from cometmq.broker.processors.admin.all import register_admin
from cometmq.broker.processors.bulk_pull import BulkPullProcessor
from cometmq.broker.processors.clients import ClientProcessor
from cometmq.broker.processors.locks import LockProcessor
from cometmq.broker.processors.offsets import OffsetProcessor
from cometmq.broker.processors.pop import PopProcessor
from cometmq.broker.processors.pop_ack import PopAckProcessor
from cometmq.broker.processors.pull import PullProcessor
from cometmq.broker.processors.query import QueryProcessor
from cometmq.broker.processors.recall import RecallProcessor
from cometmq.broker.processors.reply import ReplyProcessor
from cometmq.broker.processors.send import SendProcessor
from cometmq.broker.processors.send_back import SendBackProcessor
from cometmq.broker.processors.sink import SinkProcessor
from cometmq.broker.processors.transaction import TransactionProcessor
from cometmq.broker.queue_locks import QueueLocks
from cometmq.broker.registration import Registration
from cometmq.broker.request_modes import RequestModes
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.sink_keeper import SinkKeeper
from cometmq.broker.sink_record import SinkRecord
from cometmq.broker.stats import BrokerStats
from cometmq.broker.table_saver import TableSaver
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.topic_creation import TopicCreation
from cometmq.broker.transaction.questions import ProducerQuestions
from cometmq.broker.transaction.transactions import Transactions
from cometmq.model.address import pack_host, split_address, split_addresses
from cometmq.model.bloom import bloom_filter
from cometmq.model.topic import TopicConfig
from cometmq.protocol.codes import RequestCode
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.delay_offsets import DelayOffsetTable
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.meta.sink_lanes import SinkLanesFile
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

DRAIN_SECONDS_MAX: Final = 6.0
"""How long a stop waits for sends whose reply waits for the disk: a little longer than ``syncFlushTimeout``."""
DRAIN_STEP_SECONDS: Final = 0.005

EVERYDAY: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.BULK_PULL,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.QUERY_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.RECALL_MESSAGE,
    }
)
"""Requests of clients at work: that one is refused is their matter, and no line in the broker's log."""


class Broker:
    """``start`` it once, ``stop`` it once, both on the same event loop. The parts exist between the two.

    Args:
        config_path: the file the config came from; changes made over the network are written into it.
        ignored: RocketMQ's settings that mean nothing here, as given.
    """

    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    clients: ClientRegistry
    locks: QueueLocks
    stats: BrokerStats
    flow: FlowControl
    pops: PopService
    pop_waiting: PopWaiting
    registration: Registration
    long_polling: LongPolling
    schedule: Schedule
    transactions: Transactions
    timed: TimedMessages

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        config_path: str | None = None,
        ignored: Mapping[str, str] | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.files = files or SystemFiles()
        self.live = LiveConfig(
            config, clock=self.clock, files=self.files, path=config_path, ignored=ignored
        )
        self.dispatcher = Dispatcher()
        """What the main port serves."""
        self.vip_dispatcher = Dispatcher()
        """What the VIP port serves: all but pulls, so that long reads never stand before sends."""
        self._servers: list[RemotingServer] = []
        self._stack = AsyncExitStack()
        self._port = 0

    @property
    def port(self) -> int:
        """The bound port; 0 before the start."""
        return self._port

    @property
    def address(self) -> str:
        """What clients are told to connect to."""
        return _address(self.live.current.identity.ip1, self._port)

    async def start(self) -> None:
        """Serve from the return on.

        Raises:
            ConfigError: settings that cannot work together.
            StoreError, CorruptFile: the store cannot be opened; nothing in it was changed.
            RemotingError: a port cannot be had. Nothing is left running.
        """
        config = self.live.current
        _check(config)
        async with AsyncExitStack() as stack:
            if config.network.listen_port:
                self._port = config.network.listen_port
            else:
                # The records carry the port, so it must be known before the store is opened. Nobody else
                # knows it yet, hence nobody calls before the handlers are in place.
                self._port = await self._listen(stack, self.dispatcher, 0)
            self._open_store(stack, config)
            self._build_parts()
            client = RemotingClient(config=config.remoting_client, tls=config.tls)
            stack.push_async_callback(client.close)
            await self._build_processors(stack, client)
            if config.network.listen_port:
                await self._listen(stack, self.dispatcher, config.network.listen_port)
            if config.network.vip_port is not None:
                await self._listen(stack, self.vip_dispatcher, config.network.vip_port)
            stack.push_async_callback(self._drain)
            stack.push_async_callback(self.registration.stop)
            await self.registration.start()
            self._stack = stack.pop_all()
        log.info("broker started name=%s address=%s", config.identity.broker_name, self.address)
        _warn(config)

    async def stop(self) -> None:
        """Leave the name servers, answer what is under way, save and close everything."""
        if self._port:
            await self._stack.aclose()
            self._port = 0
            log.info("broker stopped name=%s", self.live.current.identity.broker_name)

    def _open_store(self, stack: AsyncExitStack, config: BrokerConfig) -> None:
        loop = asyncio.get_running_loop()
        directory = config.store.path("config")
        bloom = bloom_filter(
            config.filters.bloom_expected_count, config.filters.bloom_error_percent
        )
        # Before the store, which asks them about messages that it enters into their queues anew.
        self.filters = ConsumerFilters(directory, self.files, self.clock, bloom)
        self.filters.load()
        self.store = MessageStore(
            config.store,
            store_host=self._store_host(config),
            files=self.files,
            clock=self.clock,
            schedule=lambda callback: _schedule(loop, callback),
            filter_bits=self._filter_bits,
        )
        self.filters.newest_ms = lambda: self.store.last_timestamp
        self.store.load()
        stack.callback(self.store.close)
        self.topics = TopicTable(directory, self.files, self.clock)
        self.groups = GroupTable(directory, self.files, self.clock)
        self.offsets = OffsetTable(directory, self.files, self.clock)
        self.delay_offsets = DelayOffsetTable(directory, self.files, self.clock)
        self.modes = RequestModes(directory, self.files)
        for table in (self.topics, self.groups, self.offsets, self.delay_offsets, self.modes):
            table.load()
        if cut := self.offsets.cut(self.store.max_offset):
            log.warning("positions of groups were ahead of the log count=%d", cut)
            try:
                # At once: when the log has grown, nobody could tell any more.
                self.offsets.save_if_changed()
            except DiskFull as error:
                # Then the log does not grow either; it is tried again every few seconds.
                log.error("positions of groups not saved reason=%s", error)
        self.store.start()

    def _filter_bits(self, topic: str, properties: str) -> bytes:
        if not self.live.current.filters.calculates_bits:
            return b""
        return self.filters.bits_of(topic, properties)

    def _build_parts(self) -> None:
        config = self.live.current
        self.stats = BrokerStats(self.clock, cluster=config.identity.cluster_name)
        self.clients = ClientRegistry(self.clock)
        hold_seconds = config.consumers.lock_hold_ms / 1000
        self.locks = QueueLocks(self.clock, hold_seconds=hold_seconds)
        self.flow = FlowControl(config.flow, log_file_bytes=config.store.log.file_bytes)
        self.creation = TopicCreation(
            self.topics,
            self.groups,
            config.topics,
            clock=self.clock,
            on_created=self._topic_created,
            on_auto_created=self._topic_auto_created,
        )
        self.notifier = ConsumerNotifier(
            self.clients, self.groups.get, is_enabled=config.consumers.notify_ids_changed
        )
        self.live.on_change(self._apply)

    async def _build_processors(self, stack: AsyncExitStack, client: RemotingClient) -> None:
        config = self.live.current
        name_servers = split_addresses(config.network.name_servers)
        self.cluster_view = ClusterView(
            client=client,
            name_servers=name_servers,
            identity=config.identity,
            address=self.address,
        )
        stack.push_async_callback(self.cluster_view.stop)
        self.registration = Registration(
            live=self.live,
            topics=self.topics,
            client=client,
            name_servers=name_servers,
            address=self.address,
            ha_address=_address(config.identity.ip2, self._port + 1),
        )
        self.creation.create_system_entries(config.identity)
        self.creation.create_lost_entries(
            {topic: max(self.store.queue_ids(topic)) + 1 for topic in self.store.topics()}
        )
        self._saver = TableSaver((self.topics, self.groups, self.filters, self.modes))
        stack.push_async_callback(self._saver.stop)
        self._saver.start()
        functions = FilterFunctions(config.filters, self.clock)
        stack.push_async_callback(functions.stop)
        pulls = PullProcessor(
            live=self.live,
            store=self.store,
            topics=self.topics,
            offsets=self.offsets,
            creation=self.creation,
            clients=self.clients,
            filters=self.filters,
            functions=functions,
            stats=self.stats,
            clock=self.clock,
            scheduler=asyncio.get_running_loop(),
        )
        self.long_polling = pulls.long_polling
        self.store.arrivals.append(self.long_polling)
        self._client_processor = ClientProcessor(
            live=self.live,
            clients=self.clients,
            filters=self.filters,
            functions=functions,
            notifier=self.notifier,
            creation=self.creation,
        )
        housekeeping = Housekeeping(
            live=self.live,
            clock=self.clock,
            store=self.store,
            offsets=self.offsets,
            clients=self._client_processor,
            locks=self.locks,
            stats=self.stats,
            flow=self.flow,
        )
        stack.push_async_callback(housekeeping.stop)
        housekeeping.start()
        self.transactions = Transactions(
            live=self.live,
            store=self.store,
            offsets=self.offsets,
            topics=self.creation,
            questions=ProducerQuestions(self.clients, config.identity.broker_name),
            stats=self.stats,
            clock=self.clock,
        )
        stack.push_async_callback(self.transactions.stop)
        self.transactions.start()
        self.schedule = Schedule(
            live=self.live,
            store=self.store,
            table=self.delay_offsets,
            stats=self.stats,
            clock=self.clock,
            timers=asyncio.get_running_loop(),
            restore_topic=self.creation.restore,
        )
        stack.push_async_callback(self.schedule.stop)
        self.schedule.start()
        self.timed = TimedMessages(
            live=self.live,
            store=self.store,
            stats=self.stats,
            files=self.files,
            clock=self.clock,
            timers=asyncio.get_running_loop(),
            restore_topic=self.creation.restore,
            system_topic=self.creation.system_topic,
        )
        self.timed.start()
        stack.push_async_callback(self.timed.stop)
        pulls.register(self.dispatcher)
        self.dispatcher.in_spare_time = self.store.read_ahead
        bulk_pulls = BulkPullProcessor(
            live=self.live, pulls=pulls, store=self.store, stats=self.stats
        )
        bulk_pulls.register(self.dispatcher)
        self.pops = PopService(
            live=self.live,
            store=self.store,
            offsets=self.offsets,
            groups=self.groups,
            creation=self.creation,
            clock=self.clock,
            timers=asyncio.get_running_loop(),
        )
        stack.callback(self.pops.stop)
        self.pops.start()
        pops = PopProcessor(
            live=self.live,
            pops=self.pops.pops,
            topics=self.topics,
            creation=self.creation,
            filters=self.filters,
            stats=self.stats,
            clock=self.clock,
            scheduler=asyncio.get_running_loop(),
        )
        pops.register(self.dispatcher)
        self.pop_waiting = pops.waiting
        self.store.arrivals.append(self.pop_waiting)
        pop_acks = PopAckProcessor(
            live=self.live,
            pops=self.pops.pops,
            store=self.store,
            topics=self.topics,
            clock=self.clock,
        )
        sinks = SinkRecord()
        lanes_file = SinkLanesFile(config.store.path("config"), self.files)
        sink_keeper = SinkKeeper(record=sinks, store=self.store, file=lanes_file, clock=self.clock)
        sink_keeper.recover()
        stack.push_async_callback(sink_keeper.stop)
        sink_keeper.start()
        sink_lanes = SinkProcessor(
            live=self.live, record=sinks, keeper=sink_keeper, store=self.store
        )
        sends = SendProcessor(
            live=self.live,
            store=self.store,
            schedule=self.schedule,
            transactions=self.transactions,
            timed=self.timed,
            store_host=self._store_host(config),
            topics=self.topics,
            creation=self.creation,
            stats=self.stats,
            flow=self.flow,
            clock=self.clock,
            sinks=sinks,
            sink_used=sink_keeper.used,
        )
        send_backs = SendBackProcessor(
            live=self.live,
            store=self.store,
            schedule=self.schedule,
            clients=self.clients,
            creation=self.creation,
            stats=self.stats,
            clock=self.clock,
        )
        replies = ReplyProcessor(
            live=self.live,
            sends=sends,
            store=self.store,
            store_host=self._store_host(config),
            clients=self.clients,
            clock=self.clock,
        )
        offsets = OffsetProcessor(
            offsets=self.offsets, topics=self.topics, creation=self.creation, store=self.store
        )
        queries = QueryProcessor(self.store, self.live)
        locks = LockProcessor(self.locks)
        ends = TransactionProcessor(
            live=self.live, transactions=self.transactions, store=self.store, clock=self.clock
        )
        recalls = RecallProcessor(
            live=self.live,
            store=self.store,
            topics=self.topics,
            timed=self.timed,
            clock=self.clock,
        )
        for dispatcher in (self.dispatcher, self.vip_dispatcher):
            dispatcher.guards.append(self.flow.guard)
            dispatcher.everyday = EVERYDAY
            for processor in (
                sends,
                sink_lanes,
                send_backs,
                pop_acks,
                replies,
                ends,
                recalls,
                offsets,
                self._client_processor,
                locks,
                queries,
            ):
                processor.register(dispatcher)
            register_admin(
                dispatcher,
                address=self.address,
                live=self.live,
                store=self.store,
                topics=self.topics,
                groups=self.groups,
                offsets=self.offsets,
                delays=self.schedule,
                modes=self.modes,
                clients=self.clients,
                filters=self.filters,
                stats=self.stats,
                flow=self.flow,
                clock=self.clock,
                files=self.files,
                announce=self.registration.announce,
                saved=self._saver.saved,
                queues_of=self.cluster_view.readable_queues,
                wake=self.long_polling.wake,
            )

    async def _listen(self, stack: AsyncExitStack, dispatcher: Dispatcher, port: int) -> int:
        config = self.live.current
        server = RemotingServer(
            dispatcher,
            config=config.remoting,
            tls=config.tls,
            on_close=self._connection_closed,
            descriptors_below=DescriptorShares(self.files.open_max()).connections_below,
        )
        bound = await server.start(config.network.bind_address, port)
        stack.push_async_callback(server.stop)
        self._servers.append(server)
        return bound

    async def _drain(self) -> None:
        """Take no more requests and let those be answered that wait: for the disk, or for a message."""
        for server in self._servers:
            server.quiesce()
        self.long_polling.answer_all()
        self.pop_waiting.answer_all()
        flushed = self.store.watermarks.flushed
        try:
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                # The mark moves before its waiters are called, so reaching the end of the log does not yet
                # mean that everybody has an answer: only an empty queue does.
                while flushed.waiting:  # noqa: ASYNC110
                    await asyncio.sleep(DRAIN_STEP_SECONDS)
        except TimeoutError:
            log.warning("sends not answered count=%d", flushed.waiting)
        for server in self._servers:
            await server.stop()

    def _connection_closed(self, connection: Connection) -> None:
        self.long_polling.forget(connection)
        self.pop_waiting.forget(connection)
        self._client_processor.closed(connection)

    def _topic_created(self, config: TopicConfig) -> None:
        log.info(
            "topic created topic=%s queues=%d perm=%d",
            config.topic_name,
            config.queue_count,
            config.perm,
        )
        self.registration.changed(config)

    def _topic_auto_created(self, config: TopicConfig) -> None:
        if self.live.current.topics.auto_create_on_all_masters:
            self.cluster_view.spread(config)

    def _apply(self, config: BrokerConfig) -> None:
        self.store.apply(config.store)
        self.flow.apply(config.flow)
        self.creation.apply(config.topics)
        self.notifier.is_enabled = config.consumers.notify_ids_changed

    def _store_host(self, config: BrokerConfig) -> bytes:
        return pack_host(_ip_of(config.identity.ip1), self._port)

    def __repr__(self) -> str:
        identity = self.live.current.identity
        state = f"at {self.address}" if self._port else "stopped"
        return f"<Broker {identity.cluster_name}/{identity.broker_name} {state}>"


def _check(config: BrokerConfig) -> None:
    if config.identity.is_slave:
        raise ConfigError(
            "brokerRole=SLAVE needs replication, which this version does not have; run it as a master"
        )
    for address in split_addresses(config.network.name_servers):
        split_address(address)


def _warn(config: BrokerConfig) -> None:
    if not config.network.is_loopback:
        log.warning(
            "broker listens beyond loopback address=%s: without ACL whoever reaches it may read, write and delete",
            config.network.bind_address,
        )
    if not config.network.name_servers:
        log.warning("no name server is configured: clients will not find this broker")


def _schedule(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Bring a release of waiting replies from a flush thread to the loop."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop has gone, and with it everybody who waited.
        pass


def _ip_of(host: str) -> str:
    """The records hold an address, not a name."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise ConfigError(f"brokerIP1={host} is no address of any machine: {error}") from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
