"""Announces the broker and its topics to every name server, and goes on doing so.

One task per name server, so that one that is down or slow holds up neither the others nor the broker. A task
registers at the start, whenever topics change, and every ``registerNameServerPeriod``. A change is sent with the
changed topics alone; all of them are sent at the start, in the period, and over a new connection, because a name
server that was restarted has forgotten the rest. The answer names the topics whose order is configured there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

import msgspec

from cometmq.base.errors import CometError, RemoteProtocolError
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.config_slices import IdentityConfig, RegistrationConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.flags import READ_WRITE
from cometmq.model.messages.checksum import crc32
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.bodies.register import RegisterBrokerBody, encode_register_body
from cometmq.protocol.bodies.topic import TopicConfigTable, encode_data_version
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import VERSION, Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.namesrv import (
    QueryDataVersionHeader,
    RegisterBrokerHeader,
    RegisterBrokerReply,
    UnregisterBrokerHeader,
)
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

PERIOD_SECONDS: Final = (10.0, 60.0)
RETRY_SECONDS: Final = 5.0
START_SECONDS_MAX: Final = 1.0
"""How long a start waits for the name servers to know the broker; it goes on without them."""
STOP_SECONDS_MAX: Final = 1.0
ANNOUNCE_SECONDS_MAX: Final = 3.0
ENCODED_AT_ONCE: Final = 200
"""Topics whose registration is encoded on the loop: a millisecond. A new topic is known sooner without a thread."""


class MasterPlace(NamedTuple):
    """Where the master of a slave is: for requests, and for slaves."""

    address: str
    ha_address: str


class Registration:
    """Registers between ``start`` and ``stop``, any number of times.

    Args:
        address: what clients are told to connect to.
    """

    def __init__(
        self,
        *,
        live: LiveConfig,
        topics: TopicTable,
        client: RemotingClient,
        name_servers: Iterable[str],
        address: str,
    ) -> None:
        self._live = live
        self._topics = topics
        self.ha_address = ""
        """What slaves are told to connect to; to be set before the start."""
        self.on_master: Callable[[MasterPlace], None] = _nobody
        """Called with the place of this slave's master whenever a name server tells it."""
        self._links = [
            _Link(
                name_server,
                client,
                self._table,
                topics.renew_version,
                self._identity,
                self._mark_ordered,
                live,
                address,
                self,
            )
            for name_server in dict.fromkeys(name_servers)
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._permission = live.current.topics.permission
        live.on_change(self._config_changed)

    async def start(self) -> None:
        """Begin to register; returns when every name server has answered or after a second."""
        if self._tasks:
            return
        self._tasks = [asyncio.create_task(link.run()) for link in self._links]
        await self._settled(START_SECONDS_MAX)

    async def stop(self) -> None:
        """Take the broker out of every name server that can be reached."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(link.unregister() for link in self._links))

    def forget(self) -> None:
        """Say no more to the name servers, not even that the broker stops."""
        for task in self._tasks:
            task.cancel()
        for link in self._links:
            link.forget()

    def renew(self) -> None:
        """Register again now, for the answer's sake."""
        for link in self._links:
            link.changed(())

    def changed(self, config: TopicConfig) -> None:
        """A topic is new or different; the name servers are told soon, or with all others at the next start."""
        for link in self._links:
            link.changed([config.topic_name])

    async def announce(self, configs: list[TopicConfig]) -> None:
        """Tell the name servers of changed topics; returns when they know, or did not answer in time."""
        for link in self._links:
            link.changed([config.topic_name for config in configs])
        await self._settled(ANNOUNCE_SECONDS_MAX)

    @property
    def known(self) -> dict[str, bool]:
        """By name server whether it has this broker, as far as it has said."""
        return {link.name_server: link.is_known for link in self._links}

    async def _settled(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait([link.attempted() for link in self._links], timeout=seconds)

    def _mark_ordered(self, names: Iterable[str]) -> None:
        """Make topics order topics; those that are not named stay what they are."""
        found = [config for name in names if (config := self._topics.get(name)) is not None]
        changed = [
            msgspec.structs.replace(config, order=True) for config in found if not config.order
        ]
        self._topics.put_many(changed)
        for config in changed:
            log.info("topic is in order by the name server topic=%s", config.topic_name)

    def _config_changed(self, config: BrokerConfig) -> None:
        """What the broker as a whole allows is told in each topic, and name servers look at topics of a new version."""
        if config.topics.permission == self._permission:
            return
        self._permission = config.topics.permission
        self._topics.renew_version()
        for link in self._links:
            link.changed(self._topics.names())

    def _identity(self) -> IdentityConfig:
        return self._live.current.identity

    def _table(self, names: Iterable[str] | None) -> TopicConfigTable:
        """The named topics (None: all); what the broker as a whole does not allow is taken out of their permission."""
        configs = self._topics.all()
        if names is not None:
            configs = {name: configs[name] for name in names if name in configs}
        mask = self._live.current.topics.permission
        if mask & READ_WRITE != READ_WRITE:
            configs = {name: _masked(config, mask) for name, config in configs.items()}
        return TopicConfigTable(topic_config_table=configs, data_version=self._topics.version)

    def __repr__(self) -> str:
        return f"<Registration {self._links}>"


class _Link:
    """One name server, and what it has been told."""

    def __init__(
        self,
        name_server: str,
        client: RemotingClient,
        table: Callable[[Iterable[str] | None], TopicConfigTable],
        renew_version: Callable[[], None],
        identity: Callable[[], IdentityConfig],
        on_ordered: Callable[[Iterable[str]], None],
        live: LiveConfig,
        address: str,
        owner: Registration,
    ) -> None:
        self.name_server = name_server
        self._client = client
        self._table = table
        self._renew_version = renew_version
        self._identity = identity
        self._on_ordered = on_ordered
        self._live = live
        self._address = address
        self._owner = owner
        self._pending: set[str] = set()
        self._told_over: Connection | None = None
        self._told_version: DataVersion | None = None
        self._told_as: IdentityConfig | None = None
        self._is_known: bool | None = None
        self._wake = asyncio.Event()
        self._attempt: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def changed(self, names: Iterable[str]) -> None:
        self._pending.update(names)
        self._wake.set()

    def attempted(self) -> asyncio.Future[None]:
        """Done when an attempt that began after this call has ended, well or not."""
        self._wake.set()
        return self._attempt

    async def run(self) -> None:
        while True:
            self._wake.clear()
            attempt, self._attempt = self._attempt, asyncio.get_running_loop().create_future()
            names, self._pending = self._pending, set()
            error: CometError | None = None
            try:
                await self._register(names)
            except CometError as caught:
                error = caught
                self._told_over = None
            except Exception as bug:
                log.exception("registration failed name_server=%s", self.name_server)
                error = CometError(f"{type(bug).__name__}: {bug}")
                self._told_over = None
            finally:
                if not attempt.done():
                    attempt.set_result(None)
            self._note(error)
            try:
                async with asyncio.timeout(RETRY_SECONDS if error else self._period_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                pass

    @property
    def is_known(self) -> bool:
        return bool(self._is_known)

    def forget(self) -> None:
        self._told_as = self._told_over = self._told_version = self._is_known = None

    async def unregister(self) -> None:
        """Take back what was told, under the name it was told by, and forget it."""
        identity, is_known = self._told_as, self._is_known
        self.forget()
        if identity is None or not is_known:
            return
        header = UnregisterBrokerHeader(
            broker_name=identity.broker_name,
            broker_addr=self._address,
            cluster_name=identity.cluster_name,
            broker_id=identity.broker_id,
        )
        command = Command(code=RequestCode.UNREGISTER_BROKER, ext=encode_fields(header))
        try:
            await self._client.call(self.name_server, command, STOP_SECONDS_MAX)
            log.info("unregistered name_server=%s", self.name_server)
        except CometError as error:
            log.warning("not unregistered name_server=%s reason=%s", self.name_server, error)

    async def _register(self, names: set[str]) -> None:
        connection = await self._client.connection(self.name_server)
        is_partial = bool(names) and connection is self._told_over
        settings = self._settings()
        if not names and not settings.force and not await self._is_outdated(connection):
            return
        table = self._table(names if is_partial else None)
        if is_partial and table.data_version == self._told_version:
            # Another topic was told of in this version while these waited to be saved. Of a version that it knows a
            # name server takes no changes any more.
            self._renew_version()
            table = self._table(names)
        encode = partial(
            encode_register_body,
            RegisterBrokerBody(topics=table),
            compressed=settings.compressed,
            version=VERSION,
        )
        if len(table.topic_config_table) <= ENCODED_AT_ONCE:
            body = encode()
        else:
            # Fifty milliseconds of work if there are ten thousand topics. Those that change meanwhile are told next.
            body = await asyncio.to_thread(encode)
        identity = self._identity()
        acting = self._live.current.acting
        header = RegisterBrokerHeader(
            broker_name=identity.broker_name,
            broker_addr=self._address,
            cluster_name=identity.cluster_name,
            ha_server_addr=self._owner.ha_address,
            broker_id=identity.broker_id,
            compressed=settings.compressed,
            body_crc32=crc32(body) & 0x7FFFFFFF,
            # Said in any case: the topics of a slave that says nothing of it are no route for anybody.
            enable_acting_master=acting.is_enabled,
            heartbeat_timeout_millis=acting.silence_ms if acting.is_enabled else None,
        )
        command = Command(code=RequestCode.REGISTER_BROKER, ext=encode_fields(header), body=body)
        self._client.sign(command)
        reply = await connection.call(command, settings.timeout_ms / 1000)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, self.name_server)
        self._told_over = connection
        self._told_version = table.data_version
        self._told_as = identity
        if identity.is_slave:
            self._read_master(reply)
        if reply.body:
            self._read_order(reply.body)

    def _read_master(self, reply: Command) -> None:
        found = decode_fields(RegisterBrokerReply, reply.ext)
        if found.master_addr and found.ha_server_addr:
            self._owner.on_master(MasterPlace(found.master_addr, found.ha_server_addr))

    def _read_order(self, body: bytes | memoryview) -> None:
        try:
            self._on_ordered(KVTable.decode(body).table)
        except RemoteProtocolError as error:
            log.warning(
                "order configuration not understood name_server=%s reason=%s",
                self.name_server,
                error,
            )

    async def _is_outdated(self, connection: Connection) -> bool:
        """Whether the name server's copy is another version; asking also counts as a sign of life."""
        if connection is not self._told_over:
            return True
        identity = self._identity()
        header = QueryDataVersionHeader(
            broker_name=identity.broker_name,
            broker_addr=self._address,
            cluster_name=identity.cluster_name,
            broker_id=identity.broker_id,
        )
        command = Command(
            code=RequestCode.QUERY_DATA_VERSION,
            ext=encode_fields(header),
            body=encode_data_version(self._table(()).data_version),
        )
        self._client.sign(command)
        reply = await connection.call(command, self._settings().timeout_ms / 1000)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, self.name_server)
        return (reply.ext or {}).get("changed", "true").lower() == "true"

    def _note(self, error: CometError | None) -> None:
        """One line when a name server is reached or lost, none while it stays as it is."""
        is_known = error is None
        if is_known and not self._is_known:
            log.info("registered name_server=%s address=%s", self.name_server, self._address)
        elif not is_known and self._is_known is not False:
            log.warning(
                "not registered name_server=%s reason=%s; trying again every %g s",
                self.name_server,
                error,
                RETRY_SECONDS,
            )
        self._is_known = is_known

    def _period_seconds(self) -> float:
        shortest, longest = PERIOD_SECONDS
        return min(max(self._settings().period_ms / 1000, shortest), longest)

    def _settings(self) -> RegistrationConfig:
        return self._live.current.registration

    def __repr__(self) -> str:
        return f"{self.name_server}:{'known' if self._is_known else 'not reached'}"


def _masked(config: TopicConfig, mask: int) -> TopicConfig:
    return TopicConfig(
        topic_name=config.topic_name,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm & mask,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        order=config.order,
        attributes=config.attributes,
    )


def _nobody(place: MasterPlace) -> None:
    return None
