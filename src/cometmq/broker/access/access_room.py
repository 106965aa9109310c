"""The root of the room of accounts: what stands before the processors, by the settings.

    aclEnable                                    accounts of RocketMQ 4, from its files
    authenticationEnabled, authorizationEnabled  users and acls of RocketMQ 5
    neither                                      everybody may do everything

``open`` it before anybody can connect, ``register`` it before the other rooms, ``watch`` after them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from cometmq.access.access_config import AccessConfig
from cometmq.access.accounts.account import Accounts
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.door.access_guard import AccessGuard
from cometmq.access.door.account_keeper import AccountKeeper
from cometmq.access.door.account_requests import AccountRequests
from cometmq.access.door.audit_watch import Audit
from cometmq.access.door.door import (
    EVERYBODY,
    account_file,
    account_judge,
    audit_log,
    start_audit,
)
from cometmq.access.identity import Identity, Judge
from cometmq.access.plain.plain_account import PlainTable
from cometmq.access.plain.plain_files import PlainFiles
from cometmq.access.plain.plain_judge import PlainJudge
from cometmq.access.rules.need import Action
from cometmq.access.rules.request_rules import RULES
from cometmq.access.rules.rocketmq_rules import PLAIN_ROCKETMQ_RULES
from cometmq.base.ports import Clock
from cometmq.broker.access.plain_keeper import PlainKeeper
from cometmq.broker.access.plain_requests import PlainRequests
from cometmq.broker.access.replica_door import ReplicaDoor
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.request_ports import RequestPorts
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient, Sign
from cometmq.remoting.connection import Connection


class AccessRoom:
    """Args: address: of the broker, as clients know it."""

    def __init__(self, live: LiveConfig, clock: Clock, address: str) -> None:
        self._live = live
        self._clock = clock
        self._address = address
        config = self._config
        self._guard: AccessGuard | None = None
        self._replica_door: ReplicaDoor | None = None
        self._plain = PlainKeeper(PlainFiles(Path(config.home))) if config.is_plain else None
        self.accounts: AccountKeeper | None = None
        """None without a place for users."""
        if config.has_users:
            directory = Path(live.current.store.path("config"))
            self.accounts = AccountKeeper(account_file(config, directory))
        path = Path(live.current.store.path("audit.log"))
        self._audit_log = audit_log(config, path, clock)
        self._audit = None if self._audit_log is None else Audit(self._audit_log, clock)

    @property
    def sign(self) -> Sign | None:
        """Signs the requests of the broker itself; None without credentials for them."""
        return self._config.inner.sign

    async def open(self) -> None:
        """Raises ConfigError, CorruptFile, DiskFull, OSError: the start is refused."""
        judge = await self._open_judge()
        if judge is not None:
            self._guard = AccessGuard(
                judge, self._audit, subject_is_account=self._config.subject_is_account
            )
        if self._audit is not None:
            self._audit.name_of = self._name_of

    def register(self, ports: RequestPorts) -> None:
        """Before the other rooms: its guard comes first."""
        if self._guard is not None:
            ports.guard(self._guard.guard, vouch=self._guard.vouch)
            ports.on_close(self._guard.forget)
            ports.rates.account_of = self._guard.account_of
        shows_secrets = self._config.shows_secrets
        if self._plain is not None:
            requests = PlainRequests(
                self._plain,
                self._live,
                self._clock,
                self.identify,
                address=self._address,
                shows_secrets=shows_secrets,
            )
            ports.serve(requests)
        if self.accounts is not None:
            ports.serve(
                AccountRequests(self.accounts, self.identify, shows_passwords=shows_secrets)
            )

    def replica_door(self, client: RemotingClient) -> ReplicaDoor:
        """Who may connect to the port for slaves. ``client`` signs what it sends."""
        self._replica_door = ReplicaDoor(
            self._guard,
            client,
            self._clock,
            is_signing=self.sign is not None,
            lets_strangers=self._config.serves_anybody,
        )
        return self._replica_door

    def watch(self, ports: RequestPorts) -> None:
        """After all rooms: their requests are heard of from now on."""
        if self._replica_door is not None:
            self._replica_door.watch(ports.main)
            self._replica_door.watch(ports.vip)
        if self._audit is not None:
            self._audit.watch(ports.main)
            self._audit.watch(ports.vip)

    def start(self) -> None:
        """Raises ConfigError: the audit log cannot be written."""
        start_audit(self._audit_log)
        if self._plain is not None:
            self._plain.start()

    async def stop(self) -> None:
        if self._plain is not None:
            await self._plain.stop()
        if self._audit_log is not None:
            await asyncio.to_thread(self._audit_log.stop)

    def identify(self, connection: Connection, command: Command) -> Identity:
        """Whose request it is. Where nobody is asked, everybody may do everything."""
        return EVERYBODY if self._guard is None else self._guard.identify(connection, command)

    def check_topic(
        self, connection: Connection, command: Command, topic: str, actions: frozenset[Action]
    ) -> None:
        """For processors that learn only from a record which topic a request is about. Raises AccessRefused."""
        if self._guard is not None:
            self._guard.check_topic(connection, command, topic, actions)

    def account_of(self, connection: Connection) -> str:
        """Whose the last request over a connection was; "" if of nobody known."""
        return "" if self._guard is None else self._guard.account_of(connection)

    def may_publish(self, connection: Connection, topic: str) -> bool:
        """Whether the account behind a connection may publish to a topic. RocketMQ does not ask where we do."""
        if self._guard is None or not self._config.is_strict:
            return True
        return self._guard.may_publish(connection, topic)

    @property
    def _config(self) -> AccessConfig:
        return self._live.current.access

    async def _open_judge(self) -> Judge | None:
        config = self._config
        if self._plain is not None:
            await self._plain.open()
            rules = RULES if config.is_strict else PLAIN_ROCKETMQ_RULES
            plain_judge = PlainJudge(self._plain.table, rules, checks_records=config.is_strict)
            self._plain.on_change = partial(self._take_plain, plain_judge)
            return plain_judge
        if self.accounts is None:
            return None
        plain: PlainTable | None = None
        if config.migrates:
            plain = await asyncio.to_thread(PlainFiles(Path(config.home)).load)
        await self.accounts.open(config, plain)
        if not config.is_enabled:
            return None
        cluster = self._live.current.identity.cluster_name
        judge = account_judge(config, self.accounts.accounts, cluster)
        self.accounts.listeners.append(partial(self._take_accounts, judge))
        return judge

    def _take_plain(self, judge: PlainJudge, table: PlainTable) -> None:
        judge.table = table
        self._forget_decisions()

    def _take_accounts(self, judge: AccountJudge, accounts: Accounts) -> None:
        judge.accounts = accounts
        self._forget_decisions()

    def _forget_decisions(self) -> None:
        if self._guard is not None:
            self._guard.forget_all()

    def _name_of(self, connection: Connection, command: Command) -> str:
        return self.identify(connection, command).name
