"""The door of a name server or a controller: accounts before its processors, if the settings say so.

``open`` it before anybody can connect, then ``register`` the server's processors, then ``start`` it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cometmq.access.access_config import (
    NOT_FOR_STRANGERS,
    OPTIONAL,
    AccountsConfig,
    ServerAccessConfig,
)
from cometmq.access.accounts.account import Accounts
from cometmq.access.accounts.account_file import AccountFile
from cometmq.access.accounts.account_judge import ALL_CLUSTERS, AccountJudge
from cometmq.access.audit.audit_log import AuditLog
from cometmq.access.door.access_guard import AccessGuard
from cometmq.access.door.account_copy import AccountCopy
from cometmq.access.door.account_keeper import AccountKeeper
from cometmq.access.door.account_requests import AccountRequests
from cometmq.access.door.audit_watch import Audit
from cometmq.access.identity import Identity
from cometmq.access.rules.request_rules import RULES
from cometmq.access.rules.rocketmq_rules import ROCKETMQ_RULES
from cometmq.base.errors import ConfigError
from cometmq.base.ports import Clock
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

EVERYBODY = Identity("", is_super=True)
"""Where nobody is asked, everybody may do everything."""


class Door:
    """
    Args:
        directory: where accounts and the audit log are, unless the settings say otherwise; empty if there is none.
    """

    def __init__(self, config: ServerAccessConfig, directory: str, clock: Clock) -> None:
        """Raises ConfigError: there is no place for accounts."""
        self._config = config
        self._clock = clock
        self.accounts: AccountKeeper | None = None
        """None without a place for users."""
        self._guard: AccessGuard | None = None
        self._take: Callable[[Accounts], None] = _nothing
        self._copy: AccountCopy | None = None
        self._audit: Audit | None = None
        path = config.path or directory
        if not path and (config.has_users or config.is_enabled):
            raise ConfigError("accounts need a directory: set accountPath")
        if config.has_users:
            self.accounts = AccountKeeper(account_file(config, Path(path)))
        self._audit_log = audit_log(config, Path(path, "audit.log"), clock)

    async def open(self) -> None:
        """Raises ConfigError, CorruptFile, DiskFull, OSError: the start is refused."""
        if self._audit_log is not None:
            self._audit = Audit(self._audit_log, self._clock)
        if self.accounts is not None:
            await self.accounts.open(self._config, None)
            if self._config.is_enabled:
                judge = account_judge(self._config, self.accounts.accounts, ALL_CLUSTERS)
                self._guard = AccessGuard(
                    judge, self._audit, subject_is_account=self._config.subject_is_account
                )
                self._take = partial(_take, judge, self._guard)
                self.accounts.listeners.append(self._take)
        if self._audit is not None:
            self._audit.name_of = self._name_of

    def register(self, dispatcher: Dispatcher) -> None:
        """After all processors: their requests are guarded, and changes are heard of."""
        if self._guard is not None:
            dispatcher.guards.insert(0, self._guard.guard)
        if self.accounts is not None:
            AccountRequests(
                self.accounts, self.identify, shows_passwords=self._config.shows_secrets
            ).register(dispatcher)
        if self._audit is not None:
            self._audit.watch(dispatcher)

    def start(self, client: RemotingClient) -> None:
        """``client`` signs what it sends. Raises ConfigError: the audit log cannot be written."""
        start_audit(self._audit_log)
        if self.accounts is not None and self._config.sources:
            self.accounts.is_copy_of = self._config.sources
            self._copy = AccountCopy(
                self.accounts, self._config, self._config.source_addresses, client
            )
            self._copy.start()

    def share(self, keeper: AccountKeeper) -> None:
        """Decide by the accounts of a broker in the same process from now on."""
        assert self.accounts is not None, "there is no place for accounts"
        self.accounts.is_copy_of = "the brokers of this process"
        keeper.listeners.append(self._take)
        self._take(keeper.accounts)

    async def stop(self) -> None:
        if self._copy is not None:
            await self._copy.stop()
            self._copy = None
        if self._audit_log is not None:
            await asyncio.to_thread(self._audit_log.stop)

    def account_of(self, connection: Connection) -> str:
        """Whose the last request over a connection was; "" if of nobody known."""
        return "" if self._guard is None else self._guard.account_of(connection)

    def forget(self, connection: Connection) -> None:
        """It has gone."""
        if self._guard is not None:
            self._guard.forget(connection)

    def identify(self, connection: Connection, command: Command) -> Identity:
        """Whose request it is that was let pass. Raises AccessRefused: the account has gone meanwhile."""
        return EVERYBODY if self._guard is None else self._guard.identify(connection, command)

    def _name_of(self, connection: Connection, command: Command) -> str:
        return self.identify(connection, command).name


def _take(judge: AccountJudge, guard: AccessGuard, accounts: Accounts) -> None:
    judge.accounts = accounts
    guard.forget_all()


def _nothing(accounts: Accounts) -> None:
    return None


def account_file(config: AccountsConfig, directory: Path) -> AccountFile:
    return AccountFile(directory, Path(config.key_path) if config.key_path else None)


def account_judge(config: AccountsConfig, accounts: Accounts, cluster: str) -> AccountJudge:
    """The judge that the settings ask for."""
    rules = RULES if config.is_strict else ROCKETMQ_RULES
    served = frozenset(rules) - NOT_FOR_STRANGERS
    return AccountJudge(
        accounts,
        rules,
        cluster=cluster,
        is_authenticating=config.is_authenticating,
        is_authorizing=config.is_authorizing,
        not_authenticated=config.not_authenticated,
        not_authorized=config.not_authorized,
        checks_records=config.is_strict,
        for_strangers=served if config.mode == OPTIONAL else frozenset(),
    )


def audit_log(config: AccountsConfig, path: Path, clock: Clock) -> AuditLog | None:
    """At the path of the settings, else at the given one if there are accounts."""
    if not config.audit_path and not config.is_enabled:
        return None
    return AuditLog(
        Path(config.audit_path) if config.audit_path else path,
        clock,
        file_bytes_max=config.audit_bytes_max,
        file_count=config.audit_files,
    )


def start_audit(log: AuditLog | None) -> None:
    """Raises ConfigError: it cannot be written."""
    if log is not None:
        try:
            log.start()
        except OSError as error:
            raise ConfigError(f"the audit log cannot be written: {error}") from None
