"""Calls name servers, switches to the next when one fails, and keeps their list up to date."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.base.errors import RemoteProtocolError, RemotingError, UsageError
from cometmq.client.aio.instance.address_service import fetch_name_servers
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.name_server_choice import (
    ENVIRONMENT_VARIABLE,
    NameServerChoice,
    Shuffle,
    service_path,
    static_name_servers,
)
from cometmq.client.errors import AddressServiceFailed, NoNameServer, NoRoute
from cometmq.model.route import TopicRoute
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")

Call = Callable[[str, Command, float], Awaitable[Command]]
"""Address, request, seconds -> reply."""

SERVICE_SECONDS_MAX: Final = 3.0


class NameServers:
    """Args:
    call: how to call a server.
    environment: the value of NAMESRV_ADDR.

    Raises:
        UsageError: neither a name server nor an address service is given, or an address is invalid.
    """

    def __init__(
        self,
        config: ClientConfig,
        call: Call,
        *,
        environment: str = "",
        shuffle: Shuffle = random.shuffle,
    ) -> None:
        addresses = static_name_servers(config.name_servers, environment)
        if not addresses and not config.address_service:
            raise UsageError(
                "no name server given; expected addresses like 127.0.0.1:9876 as name_servers or in "
                f"the environment variable {ENVIRONMENT_VARIABLE}, or an address_service"
            )
        self._call = call
        self._timeout = config.call_seconds
        self._choice = NameServerChoice(addresses, shuffle)
        self._service = config.address_service
        self._path = service_path(config.address_service_group, config.unit_name)
        self.is_static = bool(addresses)
        """Whether the list is fixed, so that the address service is not asked."""
        self.is_silent = False
        """Whether no name server answered the last call."""

    @property
    def addresses(self) -> list[str]:
        """All addresses, the current one first."""
        return self._choice.addresses

    async def look_up(self) -> None:
        """Ask the address service; without an answer the list stays unchanged."""
        try:
            found = await fetch_name_servers(self._service, self._path, SERVICE_SECONDS_MAX)
        except AddressServiceFailed as error:
            logger.warning("address service failed reason=%s", error)
            return
        if self._choice.replace(found):
            logger.info("name servers changed addresses=%s", ";".join(sorted(found)))

    async def ask(self, request: Command) -> tuple[Command, str]:
        """The reply of the first name server that answers, and its address.

        Raises:
            NoNameServer: none did.
        """
        failures: list[str] = []
        for address in self._choice.addresses:
            try:
                reply = await self._call(address, request, self._timeout)
            except RemotingError as error:
                failures.append(str(error))
                self._choice.failed(address)
                continue
            self.is_silent = False
            return reply, address
        self.is_silent = True
        if not failures:
            raise NoNameServer(f"no name server is known yet: {self._service} named none")
        raise NoNameServer(f"no name server answered ({'; '.join(failures)})")

    async def route(self, topic: str) -> TopicRoute:
        """Where the topic's queues are.

        Raises:
            NoRoute: the name server does not know the topic.
            NoNameServer: none answered.
            RemoteProtocolError: the reply cannot be a route.
        """
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        reply, address = await self.ask(request)
        if reply.code == ResponseCode.SUCCESS:
            try:
                return decode_route(bytes(reply.body))
            except RemoteProtocolError as error:
                raise RemoteProtocolError(
                    f"name server {address} told of topic {topic!r}: {error}"
                ) from None
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            raise NoRoute(f"name server {address} does not know topic {topic!r}")
        raise error_for(reply, address)
