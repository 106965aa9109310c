"""Users and acls of a running server: a change is on disk before it counts, and then the judge decides by it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from cometmq.access.access_config import AccountsConfig
from cometmq.access.accounts.account import Accounts, User, UserType
from cometmq.access.accounts.account_bodies import decode_table
from cometmq.access.accounts.account_file import AccountFile
from cometmq.access.accounts.changes import with_user
from cometmq.access.accounts.migration import migrated
from cometmq.access.accounts.sealed_table import Exchange
from cometmq.access.inner_config import Credential
from cometmq.access.plain.plain_account import PlainTable
from cometmq.base.errors import ConfigError, DiskFull
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

log = logging.getLogger("cometmq.access")


class AccountKeeper:
    """Owned by the event loop; the file is written in a worker thread."""

    def __init__(self, file: AccountFile) -> None:
        self.accounts = Accounts()
        self.listeners: list[Callable[[Accounts], None]] = []
        """Hear of every change, once it is on disk."""
        self.is_copy_of = ""
        """The brokers that the accounts are copied from; requests change nothing then."""
        self._file = file
        self._credential: Credential | None = None
        self._lock = asyncio.Lock()

    async def open(self, config: AccountsConfig, plain: PlainTable | None) -> None:
        """Load the file, and add the users that the settings name and the accounts that are to be migrated.

        Raises:
            ConfigError, CorruptFile, DiskFull, OSError: the start is refused.
        """
        self._credential = config.inner.credential
        self.accounts = await asyncio.to_thread(self._file.load)
        try:
            accounts = _with_first_users(self.accounts, config)
            if plain is not None:
                accounts, count = migrated(accounts, plain)
                log.info("accounts migrated count=%d", count)
        except Refused as refusal:
            raise ConfigError(f"accounts cannot be taken over: {refusal.remark}") from None
        if accounts != self.accounts:
            await asyncio.to_thread(self._file.save, accounts)
            self.accounts = accounts

    async def change(self, change: Callable[[Accounts], Accounts]) -> None:
        """Raises Refused: what ``change`` raises, or the accounts cannot be saved; then nothing has changed."""
        if self.is_copy_of:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the accounts here are a copy of those at {self.is_copy_of}: change them there",
            )
        await self._set(change)

    async def _set(self, change: Callable[[Accounts], Accounts]) -> None:
        # To its end, even if the client that asked for it goes: file and memory must say the same.
        await asyncio.shield(asyncio.create_task(self._change(change)))

    def exchange(self) -> Exchange:
        """For asking another broker for its accounts, in the name that this server signs with."""
        return Exchange(self._credential)

    async def take_over(self, body: bytes, config: AccountsConfig | None = None) -> None:
        """Become a copy of another broker's accounts, and have the users that ``config`` names in any case.

        Raises:
            RemoteProtocolError: it is no table of accounts.
            Refused: it cannot be saved.
        """
        accounts = await asyncio.to_thread(decode_table, body)
        if config is not None:
            accounts = _with_first_users(accounts, config)
        await self._set(lambda current: accounts)

    async def _change(self, change: Callable[[Accounts], Accounts]) -> None:
        async with self._lock:
            accounts = change(self.accounts)
            if accounts == self.accounts:
                return
            try:
                await asyncio.to_thread(self._file.save, accounts)
            except (DiskFull, OSError) as error:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR, f"the accounts cannot be saved: {error}"
                ) from error
            self.accounts = accounts
            for hear in self.listeners:
                hear(accounts)


def _with_first_users(accounts: Accounts, config: AccountsConfig) -> Accounts:
    """A user that is there already stays as it is."""
    for credential in (config.first_user, config.inner.credential):
        if credential is not None and credential.name not in accounts.users:
            accounts = with_user(accounts, User(credential.name, credential.secret, UserType.SUPER))
            log.info("super user created username=%s", credential.name)
    return accounts
