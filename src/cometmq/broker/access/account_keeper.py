"""Users and acls of a running broker: a change is on disk before it counts, and then the judge decides by it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from cometmq.access.access_config import AccessConfig
from cometmq.access.accounts.account import Accounts, User, UserType
from cometmq.access.accounts.account_bodies import decode_table
from cometmq.access.accounts.account_file import AccountFile
from cometmq.access.accounts.changes import with_user
from cometmq.access.accounts.migration import migrated
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
        self.on_change: Callable[[Accounts], None] | None = None
        self._file = file
        self._lock = asyncio.Lock()

    async def open(self, config: AccessConfig, plain: PlainTable | None) -> None:
        """Load the file, and add the users that the settings name and the accounts that are to be migrated.

        Raises:
            ConfigError, CorruptFile, DiskFull, OSError: the start is refused.
        """
        self.accounts = await asyncio.to_thread(self._file.load)
        try:
            accounts = _with_first_users(
                self.accounts, [config.first_user, config.inner.credential]
            )
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
        # To its end, even if the client that asked for it goes: file and memory must say the same.
        await asyncio.shield(asyncio.create_task(self._change(change)))

    async def take_over(self, body: bytes) -> None:
        """Become a copy of the master's accounts. Raises RemoteProtocolError, Refused."""
        accounts = await asyncio.to_thread(decode_table, body)
        await self.change(lambda current: accounts)

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
            if self.on_change is not None:
                self.on_change(accounts)


def _with_first_users(accounts: Accounts, given: list[Credential | None]) -> Accounts:
    """A user that is there already stays as it is."""
    for credential in given:
        if credential is not None and credential.name not in accounts.users:
            accounts = with_user(accounts, User(credential.name, credential.secret, UserType.SUPER))
            log.info("super user created username=%s", credential.name)
    return accounts
