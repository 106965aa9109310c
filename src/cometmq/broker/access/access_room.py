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
from cometmq.access.accounts.account_file import AccountFile
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.audit.audit_log import AuditLog
from cometmq.access.identity import Identity, Judge
from cometmq.access.plain.plain_account import PlainTable
from cometmq.access.plain.plain_files import PlainFiles
from cometmq.access.plain.plain_judge import PlainJudge
from cometmq.access.rules.need import Action
from cometmq.access.rules.request_rules import RULES
from cometmq.access.rules.rocketmq_rules import PLAIN_ROCKETMQ_RULES, ROCKETMQ_RULES
from cometmq.base.errors import ConfigError
from cometmq.base.ports import Clock
from cometmq.broker.access.access_guard import AccessGuard
from cometmq.broker.access.account_keeper import AccountKeeper
from cometmq.broker.access.account_requests import AccountRequests
from cometmq.broker.access.audit import Audit
from cometmq.broker.access.plain_keeper import PlainKeeper
from cometmq.broker.access.plain_requests import PlainRequests
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.request_ports import RequestPorts
from cometmq.protocol.command import Command
from cometmq.remoting.client import Sign
from cometmq.remoting.connection import Connection

_EVERYBODY = Identity("", is_super=True)


class AccessRoom:
    """Args: address: of the broker, as clients know it."""

    def __init__(self, live: LiveConfig, clock: Clock, address: str) -> None:
        self._live = live
        self._clock = clock
        self._address = address
        config = self._config
        self._guard: AccessGuard | None = None
        self._plain = PlainKeeper(PlainFiles(Path(config.home))) if config.is_plain else None
        self.accounts: AccountKeeper | None = None
        """None without a place for users."""
        if config.has_users:
            key_path = Path(config.key_path) if config.key_path else None
            directory = Path(live.current.store.path("config"))
            self.accounts = AccountKeeper(AccountFile(directory, key_path))
        self._audit_log: AuditLog | None = None
        self._audit: Audit | None = None
        if config.audit_path or config.is_enabled:
            path = config.audit_path or live.current.store.path("audit.log")
            self._audit_log = AuditLog(
                Path(path),
                clock,
                file_bytes_max=config.audit_bytes_max,
                file_count=config.audit_files,
            )
            self._audit = Audit(self._audit_log, clock)

    @property
    def sign(self) -> Sign | None:
        """Signs the requests of the broker itself; None without credentials for them."""
        return self._config.inner.sign

    async def open(self) -> None:
        """Raises ConfigError, CorruptFile, DiskFull, OSError: the start is refused."""
        judge = await self._open_judge()
        if judge is not None:
            self._guard = AccessGuard(judge, self._audit)
        if self._audit is not None:
            self._audit.name_of = self._name_of

    def register(self, ports: RequestPorts) -> None:
        """Before the other rooms: its guard comes first."""
        if self._guard is not None:
            ports.guard(self._guard.guard)
            ports.on_close(self._guard.forget)
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

    def watch(self, ports: RequestPorts) -> None:
        """After all rooms: the audit log hears of their requests from now on."""
        if self._audit is not None:
            self._audit.watch(ports.main)
            self._audit.watch(ports.vip)

    def start(self) -> None:
        """Raises ConfigError: the audit log cannot be written."""
        if self._audit_log is not None:
            try:
                self._audit_log.start()
            except OSError as error:
                raise ConfigError(f"the audit log cannot be written: {error}") from None
        if self._plain is not None:
            self._plain.start()

    async def stop(self) -> None:
        if self._plain is not None:
            await self._plain.stop()
        if self._audit_log is not None:
            await asyncio.to_thread(self._audit_log.stop)

    def identify(self, connection: Connection, command: Command) -> Identity:
        """Whose request it is. Where nobody is asked, everybody may do everything."""
        return _EVERYBODY if self._guard is None else self._guard.identify(connection, command)

    def check_topic(
        self, connection: Connection, command: Command, topic: str, actions: frozenset[Action]
    ) -> None:
        """For processors that learn only from a record which topic a request is about. Raises AccessRefused."""
        if self._guard is not None:
            self._guard.check_topic(connection, command, topic, actions)

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
        judge = AccountJudge(
            self.accounts.accounts,
            RULES if config.is_strict else ROCKETMQ_RULES,
            cluster=self._live.current.identity.cluster_name,
            is_authenticating=config.is_authenticating,
            is_authorizing=config.is_authorizing,
            not_authenticated=config.not_authenticated,
            not_authorized=config.not_authorized,
            checks_records=config.is_strict,
        )
        self.accounts.on_change = partial(self._take_accounts, judge)
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
