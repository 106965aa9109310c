"""Who may connect to the port for slaves of a broker with accounts.

RocketMQ's wire of replication has no place for a signature. But a slave also asks its master for tables, with ordinary
requests, which are signed. So a host may connect to the port for slaves while requests of a super user come from it, of
the kind that slaves send: not before the first, and not long after the last. Whose certificate names a super user may
connect, too (``haTlsEnable`` with ``tlsSubjectAsAccount``). ``haAllowedAddresses`` replaces all of this by a list.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final, Protocol

from cometmq.access.door.access_guard import AccessGuard, host_of, plain_host
from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher, Handler

log = logging.getLogger("cometmq.access")

SLAVE_REQUESTS: Final = (
    RequestCode.EXCHANGE_BROKER_HA_INFO,
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_TIMER_CHECK_POINT,
)
"""Every slave sends some of them at least once a minute, RocketMQ's, too."""
PROOF_SECONDS: Final = 120.0
HOSTS_MAX: Final = 1024
KNOCK_SECONDS_MAX: Final = 3.0
NOT_PROVED: Final = (
    "no signed request of a super user came from its address lately: give it innerClientAuthenticationCredentials, "
    "or set haAllowedAddresses"
)


class Caller(Protocol):
    """What is needed of ``RemotingClient``."""

    async def call(self, address: str, command: Command, timeout: float = ...) -> Command: ...


class ReplicaDoor:
    """Owned by the event loop.

    Args:
        guard: None if nobody is asked for an account.
        client: signs what it sends if ``is_signing``.
        lets_strangers: whoever has no proof is logged, and may connect all the same.
    """

    def __init__(
        self,
        guard: AccessGuard | None,
        client: Caller,
        clock: Clock,
        *,
        is_signing: bool,
        lets_strangers: bool,
    ) -> None:
        self._is_signing = is_signing
        self._guard = guard
        self._client = client
        self._clock = clock
        self._lets_strangers = lets_strangers
        self._proved_at: dict[str, float] = {}
        self._strangers: set[str] = set()

    def watch(self, dispatcher: Dispatcher) -> None:
        """After all handlers were added: learn from the requests of slaves."""
        if self._guard is not None:
            for code in SLAVE_REQUESTS:
                dispatcher.wrap(code, self._noted)

    def refusal(self, host: str, subject: str) -> str | None:
        """Why a host may not connect; None when it may. ``subject``: the name in its certificate, if there is one."""
        if self._guard is None:
            return None
        try:
            host = plain_host(host)
        except ValueError:
            # It left before its address could be read.
            return NOT_PROVED
        proved_at = self._proved_at.get(host)
        if proved_at is not None and self._clock.monotonic() - proved_at < PROOF_SECONDS:
            return None
        identity = self._guard.certified(subject)
        if identity is not None and identity.is_super:
            return None
        if not self._lets_strangers:
            return NOT_PROVED
        if host not in self._strangers and len(self._strangers) < HOSTS_MAX:
            self._strangers.add(host)
            log.warning("slave without an account host=%s", host)
        return None

    async def knock(self, master: str) -> None:
        """Send a signed request to the master, so that it knows who connects to its other port next."""
        if not self._is_signing:
            return
        command = Command(code=RequestCode.EXCHANGE_BROKER_HA_INFO, ext={})
        try:
            await self._client.call(master, command, KNOCK_SECONDS_MAX)
        except CometError as error:
            # Then connecting fails as well, which is told.
            log.debug("no answer master=%s reason=%s", master, error)

    def _noted(self, handler: Handler) -> Handler:
        def handle(
            connection: Connection, command: Command
        ) -> Command | bytes | Awaitable[Command | None] | None:
            self._note(connection, command)
            return handler(connection, command)

        return handle

    def _note(self, connection: Connection, command: Command) -> None:
        assert self._guard is not None
        identity = self._guard.identify(connection, command)
        if not identity.is_super and not identity.is_free:
            return
        host = host_of(connection.peer)
        # The last one is the newest.
        self._proved_at.pop(host, None)
        self._proved_at[host] = self._clock.monotonic()
        if len(self._proved_at) > HOSTS_MAX:
            del self._proved_at[next(iter(self._proved_at))]
