"""Requests for the master that reach a broker that no longer is it: passed on to whoever is.

Clients learn routes from the name servers, RocketMQ's every 30 seconds. Until then they send to the broker that was the
master. Under a controller that one follows its successor, so it can pass their requests on, and nobody fails because
the master was changed. RocketMQ's brokers refuse such requests.

    master                  answers by itself
    handing over            what would be stored waits (``hand_over``)
    no master known yet     the same
    slave                   the master is asked, and its answer given

Who waits longer than a client does is refused. What was passed on once is never passed on again: two brokers may each
take the other for the master for a moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from cometmq.base.errors import CometError, ConnectFailed
from cometmq.base.ports import Clock
from cometmq.broker.access.may_touch import AccountOf, nobody_known
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import PASSED_ON_FOR, PASSED_ON_MARK
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection

log = logging.getLogger("cometmq.broker")

PASSED_ON: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.END_TRANSACTION,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UNLOCK_BATCH_MQ,
        RequestCode.RECALL_MESSAGE,
    }
)
SECONDS_MAX: Final = 2.5
"""A little less than clients wait."""
PAUSE_SECONDS: Final = 0.02
UNDER_WAY_MAX: Final = 10_000
UNDER_WAY_BYTES_MAX: Final = 128 * 1024 * 1024


class RoleOfBroker(Protocol):
    """What is needed of ``role.Role``."""

    @property
    def is_settled(self) -> bool: ...


class PassOn:
    """
    Args:
        master: the address of the master, if another broker is it, and is known.
        account_of: whose the request is that came last over a connection. The broker vouches for it: it signs what it
            passes on, as a super user, and names the account, whose rights count at the master, which alone can check
            some of them. What comes of nobody known is passed on as it is, and the master decides about that.
    """

    def __init__(
        self,
        live: LiveConfig,
        role: RoleOfBroker,
        client: RemotingClient,
        clock: Clock,
        master: Callable[[], str | None],
        account_of: AccountOf = nobody_known,
    ) -> None:
        self._live = live
        self._account_of = account_of
        self._role = role
        self._client = client
        self._monotonic = clock.monotonic
        self._master = master
        self._is_open = False
        self._is_slave: bool | None = None
        self._held_until = 0.0
        self._under_way = 0
        self._under_way_bytes = 0
        live.on_change(self._apply)

    def hold(self, seconds: float) -> None:
        """Let what would be stored wait, for so long at most."""
        self._is_open = False
        self._held_until = self._monotonic() + seconds

    def release(self) -> None:
        """Go on after all."""
        self._held_until = 0.0

    def guard(
        self, connection: Connection, command: Command
    ) -> Command | Awaitable[Command | None] | None:
        """Stands before the processors of a broker under a controller; costs a master one test."""
        if self._is_open or command.code not in PASSED_ON:
            return None
        if self._leads:
            self._is_open = True
            return None
        body_bytes = len(command.body)
        if command.ext is not None and PASSED_ON_MARK in command.ext:
            return _refusal(command, "this broker is not the master")
        if (
            self._under_way >= UNDER_WAY_MAX
            or self._under_way_bytes + body_bytes > UNDER_WAY_BYTES_MAX
        ):
            return command.reply(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD]the master is replaced, and {self._under_way} requests wait for the next one already",
            )
        return self._ask(_marked(command, self._account_of(connection)), command, body_bytes)

    def is_idle(self) -> bool:
        """Whether the guard lets everything pass."""
        return self._is_open

    @property
    def _leads(self) -> bool:
        return (
            not self._live.current.identity.is_slave
            and self._role.is_settled
            and self._monotonic() >= self._held_until
        )

    async def _ask(self, passed: Command, command: Command, body_bytes: int) -> Command | None:
        self._under_way += 1
        self._under_way_bytes += body_bytes
        try:
            return await self._ask_on(passed, command)
        finally:
            self._under_way -= 1
            self._under_way_bytes -= body_bytes

    async def _ask_on(self, passed: Command, command: Command) -> Command | None:
        deadline = self._monotonic() + SECONDS_MAX
        is_vouched_for = PASSED_ON_FOR in (passed.ext or {})
        reason = "no master is known"
        while (left := deadline - self._monotonic()) > 0:
            if self._leads:
                return _refusal(command, "this broker has just become the master")
            address = self._master()
            if address is not None and self._live.current.identity.is_slave:
                try:
                    if command.is_oneway:
                        await self._client.oneway(address, passed, as_is=not is_vouched_for)
                        return None
                    reply = await self._client.call(address, passed, left, as_is=not is_vouched_for)
                except ConnectFailed as error:
                    reason = str(error)
                except CometError as error:
                    return command.reply(
                        ResponseCode.SYSTEM_ERROR,
                        f"passed on to the master at {address}, whose answer is not known: {error}",
                    )
                else:
                    if reply.code != ResponseCode.SERVICE_NOT_AVAILABLE:
                        return command.reply(
                            reply.code, reply.remark, ext=reply.ext, body=reply.body
                        )
                    reason = reply.remark or ""
            await asyncio.sleep(PAUSE_SECONDS)
        return _refusal(command, reason)

    def _apply(self, config: BrokerConfig) -> None:
        if config.identity.is_slave is not self._is_slave:
            self._is_slave = config.identity.is_slave
            self._is_open = False

    def __repr__(self) -> str:
        return f"<PassOn to={self._master()} under_way={self._under_way}>"


def _marked(command: Command, account: str) -> Command:
    ext = {**(command.ext or {}), PASSED_ON_MARK: "1"}
    # What a client may have said about itself does not count.
    ext.pop(PASSED_ON_FOR, None)
    if account:
        ext[PASSED_ON_FOR] = account
    return Command(
        code=command.code,
        ext=ext,
        body=command.body,
        language=command.language,
        version=command.version,
    )


def _refusal(command: Command, reason: str) -> Command:
    return command.reply(ResponseCode.SERVICE_NOT_AVAILABLE, f"service not available now: {reason}")
