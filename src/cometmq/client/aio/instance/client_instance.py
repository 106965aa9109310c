"""What producers and consumers share: name servers, routes, connections to brokers, heartbeats.

Next on a message's path: ``producer`` sends through it, consumers read through it. ``background`` does the periodic
work, ``server_requests`` passes requests from brokers to the right role.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import weakref
from collections.abc import Mapping
from typing import Final, Protocol, Self

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError, UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance.background import Background
from cometmq.client.aio.instance.group_members import ask_members
from cometmq.client.aio.instance.heartbeat import Heartbeats
from cometmq.client.aio.instance.name_servers import NameServers
from cometmq.client.aio.instance.roles import ConsumerRole, ProducerRole, RoleTable
from cometmq.client.aio.instance.routes import Routes
from cometmq.client.aio.instance.server_requests import ServerRequests
from cometmq.client.client_config import DEFAULT_INSTANCE, ClientConfig
from cometmq.client.core.broker_order import BrokerOrder, Place
from cometmq.client.core.client_id import client_id, unique_instance_name
from cometmq.client.core.name_server_choice import ENVIRONMENT_VARIABLE
from cometmq.client.core.namespace import unwrap, wrap
from cometmq.client.errors import BrokerNotKnown, ClientClosed, NoRoute
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import TopicRoute
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.local_address import local_address

logger = logging.getLogger("cometmq.client")

UNREACHABLE_SECONDS: Final = 60.0
"""How long nothing is read from a broker that did not answer a read, unless it answers a heartbeat before."""


class Remoting(Protocol):
    """The part of ``RemotingClient`` that is used here."""

    async def call(self, address: str, command: Command, timeout: float) -> Command: ...

    async def oneway(self, address: str, command: Command) -> None: ...

    async def connection(self, address: str) -> Connection: ...

    def ready(self, address: str) -> Connection | None: ...

    async def close(self) -> None: ...


class ClientInstance:
    """One per client id and event loop; ``acquire`` shares it, the last ``release`` closes it.

    Args:
        has_stable_id: keep the instance name DEFAULT, so that the client id is the same after a restart. Broadcasting
            consumers need that: they keep their positions in a file of that name.
        remoting: for tests.

    Raises:
        UsageError: no name server and no address service is given.
        ConfigError: the TLS settings cannot be used.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        clock: Clock | None = None,
        has_stable_id: bool = False,
        remoting: Remoting | None = None,
    ) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.client_id = _client_id(config, has_stable_id)
        self._roles = RoleTable()
        self._name_servers = NameServers(
            config, self.call, environment=os.environ.get(ENVIRONMENT_VARIABLE, "")
        )
        dispatcher = Dispatcher()
        ServerRequests(
            self._roles,
            namespace=config.namespace,
            name_servers=lambda: self._name_servers.addresses,
        ).register(dispatcher)
        self._remoting: Remoting = remoting or RemotingClient(
            dispatcher,
            config=config.remoting,
            tls=config.tls,
            on_open=self._connection_opened,
            on_close=self._connection_lost,
        )
        self.ready = self._remoting.ready
        """Finds the connection to an address if it is open and takes what is sent; None if ``call`` would wait."""
        self._order = BrokerOrder(UNREACHABLE_SECONDS)
        self._routes = Routes(
            self._name_servers,
            self._roles,
            self.clock,
            poll_seconds=config.poll_name_server_millis / 1000,
            on_change=self._route_changed,
        )
        self._heartbeats = Heartbeats(
            self.client_id,
            self._roles,
            self._routes.table,
            self.call,
            timeout=config.call_seconds,
            is_unit_mode=config.is_unit_mode,
            on_answer=self._order.answered,
        )
        self._background = Background(config, self._name_servers, self._routes, self._heartbeats)
        self._users = 1
        self._shared_in: dict[str, ClientInstance] = {}
        self._starting = asyncio.Lock()
        self._is_started = False
        self._leaving: set[asyncio.Task[None]] = set()

    @classmethod
    def acquire(
        cls, config: ClientConfig, *, clock: Clock | None = None, has_stable_id: bool = False
    ) -> Self:
        """The instance with the config's client id in the running event loop, created if there is none.

        Raises:
            UsageError: there is one with other settings, or these settings cannot be used.
        """
        instances = _INSTANCES.setdefault(asyncio.get_running_loop(), {})
        known = instances.get(_client_id(config, has_stable_id))
        if known is None:
            made = cls(config, clock=clock, has_stable_id=has_stable_id)
            instances[made.client_id] = made
            made._shared_in = instances
            return made
        assert isinstance(known, cls)
        if known.config != config:
            raise UsageError(
                f"client id {known.client_id} is in use with other settings; "
                "give one of the clients another instance_name"
            )
        known._users += 1
        return known

    async def start(self) -> None:
        """Start the background work. Further calls do nothing."""
        async with self._starting:
            if self._users == 0:
                raise ClientClosed(f"client {self.client_id} is closed; make a new one")
            if self._is_started:
                return
            await self._background.start()
            self._is_started = True
            logger.info("client started id=%s", self.client_id)

    async def release(self) -> None:
        """Remove one user. The last one tells the brokers and closes the connections."""
        async with self._starting:
            if self._users == 0:
                return
            self._users -= 1
            if self._users == 0:
                await self._close()

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """The topic's route: the same object until something in it changes.

        It is at most 30 s old (``poll_name_server_millis``). The last known one is used while no name server answers.

        Raises:
            NoRoute: the name servers do not know the topic.
            NoNameServer: none answered and nothing is known yet.
        """
        return await self._routes.route(topic, fresh=fresh)

    async def publish_route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """The topic's route, or that of the topic from which new ones are created (TBW102)."""
        return await self._routes.publish_route(topic, fresh=fresh)

    def known_route(self, topic: str) -> TopicRoute | None:
        return self._routes.table.route(topic)

    def forget_route(self, topic: str) -> None:
        """Ask again before the next use: a broker of the route failed or refused."""
        self._routes.table.doubt(topic)

    async def find_broker(self, queue: MessageQueue) -> str:
        """The address of the queue's broker: its master, or a slave while no master is known.

        Raises:
            BrokerNotKnown: no route of the queue's topic names the broker.
        """
        table = self._routes.table
        address = table.writable_address(queue.broker_name)
        if address is None or table.is_stale(queue.topic):
            await self._look_again(queue, is_known=address is not None)
            address = table.writable_address(queue.broker_name)
        if address is None:
            raise BrokerNotKnown(
                f"no route of topic {queue.topic!r} names broker {queue.broker_name!r}"
            )
        return address

    async def find_master(self, queue: MessageQueue) -> str:
        """The address of the master of the queue's broker, which alone can write.

        Raises:
            BrokerNotKnown: no route of the queue's topic names a master of the broker.
        """
        address = self.broker_address(queue.broker_name)
        if address is None or self._routes.table.is_stale(queue.topic):
            await self._look_again(queue, is_known=address is not None)
            address = self.broker_address(queue.broker_name)
        if address is None:
            raise BrokerNotKnown(
                f"no route of topic {queue.topic!r} names a master of broker {queue.broker_name!r}"
            )
        return address

    async def _look_again(self, queue: MessageQueue, *, is_known: bool) -> None:
        try:
            await self.publish_route(queue.topic)
        except CometError:
            # An address that is known is better than none.
            if not is_known:
                raise

    def broker_addresses(self, broker_name: str) -> Mapping[int, str]:
        """All addresses of a broker by id, none when no known route names it."""
        return self._routes.table.addresses(broker_name)

    def broker_address(self, broker_name: str, broker_id: int = MASTER_ID) -> str | None:
        """The address of one broker; None if no known route names it."""
        return self._routes.table.addresses(broker_name).get(broker_id)

    def read_place(self, broker_name: str, suggested_id: int) -> Place | None:
        """Where to read: the suggested broker, otherwise any other of that name.

        One that did not answer lately is chosen only when there is no other.
        """
        now = self.clock.monotonic()
        places = self._routes.table.readable_places(broker_name, suggested_id)
        reached = (place for place in places if not self._order.is_shunned(place.address, now))
        return next(reached, places[0] if places else None)

    def unreachable(self, address: str) -> None:
        """A read failed there: read elsewhere until it answers a heartbeat, or for a minute."""
        self._order.failed(address, self.clock.monotonic())

    def broker_version(self, broker_name: str) -> int:
        """The version from the broker's last heartbeat reply; 0 while there was none."""
        return self._heartbeats.version(broker_name)

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        """Send a request, signed if there are credentials, and return its reply, whatever its code.

        Raises:
            ConnectFailed, CallTimedOut, ConnectionLost, TooManyInFlight: see ``remoting.connection``.
        """
        self.sign(command)
        return await self._remoting.call(address, command, timeout)

    async def oneway(self, address: str, command: Command) -> None:
        """Send a request without a reply, signed if there are credentials."""
        self.sign(command)
        await self._remoting.oneway(address, command)

    async def connection(self, address: str) -> Connection:
        """The connection that calls to an address use, opened now if there is none. Raises ConnectFailed."""
        return await self._remoting.connection(address)

    @property
    def has_credentials(self) -> bool:
        """Whether requests are signed."""
        return self.config.credentials.is_set

    def sign(self, command: Command) -> None:
        """Sign a request, if there are credentials."""
        account = self.config.credentials
        if account.is_set:
            sign(command, account.access_key, account.secret_key, account.security_token or None)

    @property
    def name_servers(self) -> list[str]:
        """Their addresses, the one in use first."""
        return self._name_servers.addresses

    async def ask_name_server(self, request: Command) -> tuple[Command, str]:
        """The reply of the first name server that answers, and its address. Raises NoNameServer."""
        return await self._name_servers.ask(request)

    def add_producer(self, role: ProducerRole) -> None:
        """Tell brokers of it from now on. Raises GroupInUse when its group is there with this client id."""
        self._roles.add_producer(role)
        self.refresh_soon()

    def add_consumer(self, role: ConsumerRole) -> None:
        """Tell brokers of it from now on. Raises GroupInUse when its group is there with this client id."""
        self._roles.add_consumer(role)
        self.refresh_soon()

    def remove_producer(self, role: ProducerRole) -> None:
        """Brokers are told in the background; ``release`` waits for that."""
        if self._roles.remove_producer(role):
            self._leave(producer_group=role.group)

    def remove_consumer(self, role: ConsumerRole) -> None:
        """Brokers are told in the background; ``release`` waits for that."""
        if self._roles.remove_consumer(role):
            self._leave(consumer_group=role.group)

    def refresh_soon(self) -> None:
        """Topics or subscriptions of a role changed: refresh routes and send a heartbeat now, in the background."""
        self._background.roles_changed()

    async def heartbeat(self) -> None:
        """Send a heartbeat to all brokers of known routes now. A broker that does not answer is logged."""
        await self._heartbeats.beat_all()

    async def consumer_ids(self, topic: str, group: str) -> list[str]:
        """The client ids of a group's consumers, as the brokers of the topic know them.

        Raises:
            NoRoute: the topic has no broker.
            BrokerReplyError: no broker knows a consumer of the group.
            RemotingError: no broker answered.
        """
        route = await self.route(topic)
        known = (
            self._routes.table.writable_address(data.broker_name) for data in route.broker_datas
        )
        addresses = [address for address in known if address is not None]
        if not addresses:
            raise NoRoute(f"topic {topic!r} has no broker")
        return await ask_members(self.call, addresses, group, self.config.call_seconds)

    def wrap_topic(self, name: str) -> str:
        """The topic's name on the wire."""
        return wrap(self.config.namespace, name)

    def unwrap_topic(self, name: str) -> str:
        """The topic's name for the user."""
        return unwrap(self.config.namespace, name)

    def wrap_group(self, name: str) -> str:
        """The group's name on the wire."""
        return wrap(self.config.namespace, name)

    def __repr__(self) -> str:
        return (
            f"<ClientInstance {self.client_id} name_servers={';'.join(self._name_servers.addresses)} "
            f"producers={len(self._roles.producers)} consumers={len(self._roles.consumers)}>"
        )

    def _route_changed(self, topic: str) -> None:
        self._background.route_changed()
        for consumer in list(self._roles.consumers.values()):
            if topic in consumer.topics():
                consumer.rebalance_soon()

    def _connection_opened(self, address: str) -> None:
        self._background.connection_opened(address)

    def _connection_lost(self, connection: Connection) -> None:
        self._background.connection_lost(connection.peer)

    async def _close(self) -> None:
        self._shared_in.pop(self.client_id, None)
        await self._background.stop()
        for producer in list(self._roles.producers.values()):
            self.remove_producer(producer)
        for consumer in list(self._roles.consumers.values()):
            self.remove_consumer(consumer)
        if self._leaving:
            await asyncio.wait(self._leaving)
        await self._routes.close()
        await self._remoting.close()

    def _leave(self, *, producer_group: str = "", consumer_group: str = "") -> None:
        leaving = asyncio.get_running_loop().create_task(
            self._heartbeats.unregister(
                producer_group=producer_group, consumer_group=consumer_group
            )
        )
        self._leaving.add(leaving)
        leaving.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._leaving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("unregistering failed id=%s", self.client_id, exc_info=error)


_INSTANCES: Final[
    weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ClientInstance]]
] = weakref.WeakKeyDictionary()
"""By event loop and client id: connections cannot be shared between loops."""


def _client_id(config: ClientConfig, has_stable_id: bool) -> str:
    instance_name = config.instance_name
    if instance_name == DEFAULT_INSTANCE and not has_stable_id:
        instance_name = unique_instance_name(os.getpid(), time.monotonic_ns())
    return client_id(config.client_ip or local_address(), instance_name, config.unit_name)
