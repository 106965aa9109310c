"""The library's one entry: connections to a cluster, and the operator's actions by subject."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from cometmq.admin.accounts.plain_accounts import PlainAccounts
from cometmq.admin.accounts.users import Acls, Users
from cometmq.admin.calls import Calls
from cometmq.admin.definitions.transfer import Transfer
from cometmq.admin.fan_out import FanOut
from cometmq.admin.groups.connections import Connections
from cometmq.admin.groups.groups import Groups
from cometmq.admin.groups.offsets import Offsets
from cometmq.admin.messages.dead_letters import DeadLetters
from cometmq.admin.messages.messages import Messages
from cometmq.admin.messages.sender import ToolProducer
from cometmq.admin.messages.traces import Traces
from cometmq.admin.servers.brokers import Brokers
from cometmq.admin.servers.clusters import Clusters
from cometmq.admin.servers.controllers import Controllers
from cometmq.admin.servers.name_servers import KeyValues, NameServers
from cometmq.admin.servers.replication import Replication
from cometmq.admin.topics.topics import Topics
from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.blocks import AsyncBlock
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import ClientClosed
from cometmq.model.address import split_address, split_addresses

SERVERS_AT_ONCE = 128


class Admin(AsyncBlock):
    """``async with Admin("127.0.0.1:9876") as admin: await admin.topics.names()``.

    It holds connections and nothing else: nothing runs in the background, and every answer is asked for anew.

    Args:
        name_servers: overrides those in ``config``.
        controllers: addresses of controllers, if there are any.
        config: account, TLS, and the rest; ``load_client_config`` reads it from a file. Its namespace is not used.
        timeout: seconds for each request; overrides the one in ``config`` (3). What is known to take longer gets more.
        concurrency: how many servers are asked at once.

    Raises:
        UsageError: an address that is none, or no name server.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str] | None = None,
        *,
        controllers: str | Sequence[str] = (),
        config: ClientConfig | None = None,
        timeout: float | None = None,
        concurrency: int = SERVERS_AT_ONCE,
    ) -> None:
        chosen = (config or ClientConfig()).with_name_servers(name_servers)
        if timeout is not None:
            if timeout < 0.001:
                raise UsageError(f"expected a timeout in seconds above 0, got {timeout}")
            chosen = dataclasses.replace(chosen, call_millis=int(timeout * 1000))
        if concurrency < 1:
            raise UsageError(f"expected to ask at least one server at once, got {concurrency}")
        self._config = dataclasses.replace(chosen, namespace="")
        self._concurrency = concurrency
        self._controllers = (
            split_addresses(controllers) if isinstance(controllers, str) else list(controllers)
        )
        for address in self._controllers:
            split_address(address)
        self._running: _Rooms | None = None

    async def start(self) -> None:
        """Get ready. Does nothing if it is already running; no server is asked yet.

        Raises:
            UsageError: no name server is given.
            ConfigError: the TLS settings cannot be used.
        """
        if self._running is None:
            instance = ClientInstance(self._config)
            calls = Calls(instance, FanOut(self._concurrency), self._controllers)
            self._running = _Rooms(calls)

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""
        rooms, self._running = self._running, None
        if rooms is not None:
            await rooms.producer.close()
            await rooms.calls.instance.release()

    @property
    def clusters(self) -> Clusters:
        """Which brokers there are, and how they are."""
        return self._rooms.clusters

    @property
    def brokers(self) -> Brokers:
        """Brokers as servers: figures, settings, upkeep."""
        return self._rooms.brokers

    @property
    def name_servers(self) -> NameServers:
        """Their settings, and write permission of brokers."""
        return self._rooms.name_servers

    @property
    def kv(self) -> KeyValues:
        """Texts that name servers keep, by namespace and key."""
        return self._rooms.kv

    @property
    def topics(self) -> Topics:
        """List, define, change, delete, and where their queues are."""
        return self._rooms.topics

    @property
    def groups(self) -> Groups:
        """List, define, change, delete, and how far they are."""
        return self._rooms.groups

    @property
    def connections(self) -> Connections:
        """Who is connected."""
        return self._rooms.connections

    @property
    def controllers(self) -> Controllers:
        """Who leads, which replicas are in sync, elections."""
        return self._rooms.controllers

    @property
    def replication(self) -> Replication:
        """How far slaves are, and the history of masters."""
        return self._rooms.replication

    @property
    def offsets(self) -> Offsets:
        """Positions of groups: preview and reset, skip, clone, set."""
        return self._rooms.offsets

    @property
    def users(self) -> Users:
        """Users of RocketMQ 5 (ACL 2)."""
        return self._rooms.users

    @property
    def acls(self) -> Acls:
        """What users of RocketMQ 5 may do (ACL 2)."""
        return self._rooms.acls

    @property
    def plain_accounts(self) -> PlainAccounts:
        """Accounts of RocketMQ 4 (ACL 1)."""
        return self._rooms.plain_accounts

    @property
    def definitions(self) -> Transfer:
        """Export and import of topics, groups and accounts."""
        return self._rooms.definitions

    @property
    def messages(self) -> Messages:
        """Look up, scan, send, send again."""
        return self._rooms.messages

    @property
    def dead_letters(self) -> DeadLetters:
        """Messages that a group gave up on."""
        return self._rooms.dead_letters

    @property
    def traces(self) -> Traces:
        """What producers and consumers reported about a message."""
        return self._rooms.traces

    @property
    def _rooms(self) -> _Rooms:
        if self._running is None:
            raise ClientClosed(f"{self!r} is not running: use it in an `async with` block")
        return self._running

    def __repr__(self) -> str:
        state = "running" if self._running is not None else "not running"
        return f"<Admin {self._config.name_servers or 'NAMESRV_ADDR'} {state}>"


class _Rooms:
    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.clusters = Clusters(calls)
        self.brokers = Brokers(calls)
        self.name_servers = NameServers(calls)
        self.kv = KeyValues(calls)
        self.topics = Topics(calls)
        self.groups = Groups(calls)
        self.connections = Connections(calls)
        self.controllers = Controllers(calls)
        self.replication = Replication(calls)
        self.offsets = Offsets(calls)
        self.users = Users(calls)
        self.acls = Acls(calls)
        self.plain_accounts = PlainAccounts(calls)
        self.definitions = Transfer(calls)
        self.producer = ToolProducer(calls.instance.config)
        self.messages = Messages(calls, self.producer)
        self.dead_letters = DeadLetters(calls, self.messages)
        self.traces = Traces(calls)
