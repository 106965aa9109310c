"""The blocking ``Admin``: the same names and parameters, without ``async``."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.admin import admin as aio
from cometmq.admin.sync.accounts import Acls, PlainAccounts, Users
from cometmq.admin.sync.definitions import Transfer
from cometmq.admin.sync.groups import Connections, Groups, Offsets
from cometmq.admin.sync.messages import DeadLetters, Messages, Traces
from cometmq.admin.sync.servers import (
    Brokers,
    Clusters,
    Controllers,
    KeyValues,
    NameServers,
    Replication,
)
from cometmq.admin.sync.topics import Topics
from cometmq.client.client_config import ClientConfig
from cometmq.client.sync.client import BlockingClient


class Admin(BlockingClient):
    """``with Admin("127.0.0.1:9876") as admin: admin.topics.names()``.

    Thread-safe. Must not be used in a thread that runs an event loop; ``cometmq.admin.Admin`` is for those.

    Args:
        name_servers: overrides those in ``config``.
        controllers: addresses of controllers, if there are any.
        config: account, TLS, and the rest; ``load_client_config`` reads it from a file. Its namespace is not used.
        timeout: seconds for each request; overrides the one in ``config`` (3). What is known to take longer gets more.
        concurrency: how many servers are asked at once.

    Raises:
        UsageError: an address that is none.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str] | None = None,
        *,
        controllers: str | Sequence[str] = (),
        config: ClientConfig | None = None,
        timeout: float | None = None,
        concurrency: int = aio.SERVERS_AT_ONCE,
    ) -> None:
        super().__init__()
        self._aio = aio.Admin(
            name_servers,
            controllers=controllers,
            config=config,
            timeout=timeout,
            concurrency=concurrency,
        )

    def start(self) -> None:
        """Get ready. Does nothing if it is already running; no server is asked yet.

        Raises:
            UsageError: no name server is given.
            ConfigError: the TLS settings cannot be used.
        """
        self._start(self._aio.start)

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._close(self._aio.close)

    @property
    def clusters(self) -> Clusters:
        """Which brokers there are, and how they are."""
        return Clusters(self, self._aio.clusters)

    @property
    def brokers(self) -> Brokers:
        """Brokers as servers: figures, settings, upkeep."""
        return Brokers(self, self._aio.brokers)

    @property
    def name_servers(self) -> NameServers:
        """Their settings, and write permission of brokers."""
        return NameServers(self, self._aio.name_servers)

    @property
    def kv(self) -> KeyValues:
        """Texts that name servers keep, by namespace and key."""
        return KeyValues(self, self._aio.kv)

    @property
    def controllers(self) -> Controllers:
        """Who leads, which replicas are in sync, elections."""
        return Controllers(self, self._aio.controllers)

    @property
    def replication(self) -> Replication:
        """How far slaves are, and the history of masters."""
        return Replication(self, self._aio.replication)

    @property
    def topics(self) -> Topics:
        """List, define, change, delete, and where their queues are."""
        return Topics(self, self._aio.topics)

    @property
    def groups(self) -> Groups:
        """List, define, change, delete, and how far they are."""
        return Groups(self, self._aio.groups)

    @property
    def connections(self) -> Connections:
        """Who is connected."""
        return Connections(self, self._aio.connections)

    @property
    def offsets(self) -> Offsets:
        """Positions of groups: preview and reset, skip, clone, set."""
        return Offsets(self, self._aio.offsets)

    @property
    def messages(self) -> Messages:
        """Look up, scan, send, send again."""
        return Messages(self, self._aio.messages)

    @property
    def dead_letters(self) -> DeadLetters:
        """Messages that a group gave up on."""
        return DeadLetters(self, self._aio.dead_letters)

    @property
    def traces(self) -> Traces:
        """What producers and consumers reported about a message."""
        return Traces(self, self._aio.traces)

    @property
    def users(self) -> Users:
        """Users of RocketMQ 5 (ACL 2)."""
        return Users(self, self._aio.users)

    @property
    def acls(self) -> Acls:
        """What users of RocketMQ 5 may do (ACL 2)."""
        return Acls(self, self._aio.acls)

    @property
    def plain_accounts(self) -> PlainAccounts:
        """Accounts of RocketMQ 4 (ACL 1)."""
        return PlainAccounts(self, self._aio.plain_accounts)

    @property
    def definitions(self) -> Transfer:
        """Export and import of topics, groups and accounts."""
        return Transfer(self, self._aio.definitions)

    def __repr__(self) -> str:
        return repr(self._aio)
