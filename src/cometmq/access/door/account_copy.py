"""Copies the users and acls of a broker to a name server or controller, as slaves copy those of their master."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from cometmq.access.access_config import AccountsConfig
from cometmq.access.door.account_keeper import AccountKeeper
from cometmq.base.errors import CometError
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient

log = logging.getLogger("cometmq.access")

PERIOD_SECONDS: Final = 3.0
ASK_SECONDS_MAX: Final = 3.0


class AccountCopy:
    """Asks one broker after the other until one answers, every few seconds. Owned by the event loop.

    Args:
        client: signs what it sends with an account that is a super user's at the brokers.
    """

    def __init__(
        self,
        keeper: AccountKeeper,
        config: AccountsConfig,
        brokers: Sequence[str],
        client: RemotingClient,
    ) -> None:
        self._keeper = keeper
        self._config = config
        self._brokers = brokers
        self._client = client
        self._told: str | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="cometmq-account-copy")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def copy(self) -> None:
        """Once. What goes wrong is logged, and the old accounts stay."""
        reasons: list[str] = []
        for address in self._brokers:
            try:
                await self._copy_from(address)
            except CometError as error:
                reasons.append(f"{address}: {error}")
            except Refused as refusal:
                reasons.append(f"{address}: {refusal.remark}")
            else:
                self._tell(None)
                return
        self._tell("; ".join(reasons))

    async def _copy_from(self, address: str) -> None:
        """Raises CometError, Refused."""
        exchange = self._keeper.exchange()
        command = Command(code=RequestCode.GET_ACCOUNTS, ext=exchange.ext)
        reply = await self._client.call(address, command, ASK_SECONDS_MAX)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        await self._keeper.take_over(exchange.opened(bytes(reply.body)), self._config)

    async def _run(self) -> None:
        while True:
            try:
                await self.copy()
            except Exception:
                log.exception("accounts not copied")
            await asyncio.sleep(PERIOD_SECONDS)

    def _tell(self, reason: str | None) -> None:
        """A line when it changes, not every few seconds."""
        if reason == self._told:
            return
        if reason is not None:
            log.warning("accounts not copied, the old ones stay reason=%s", reason)
        elif self._told is not None:
            log.info("accounts are copied again")
        self._told = reason
