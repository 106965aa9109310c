"""Asks the servers of a running cluster, as its operator and as a stranger; changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NamedTuple

from cometmq.admin import Admin, ByServer, Target
from cometmq.base.errors import CometError, UsageError
from cometmq.cli.doctor.facts import ClientFacts, ClusterFacts, Kind, ServerFacts
from cometmq.cli.doctor.tls_probe import tcp_failure, tls_facts
from cometmq.client.client_config import ClientConfig
from cometmq.model.address import split_address, split_addresses
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.tls import TlsConfig

SERVERS_MAX: Final = 1000
AT_ONCE_MAX: Final = 16

_SETTINGS: Final = {
    Kind.NAME_SERVER: RequestCode.GET_NAMESRV_CONFIG,
    Kind.BROKER: RequestCode.GET_BROKER_CONFIG,
    Kind.CONTROLLER: RequestCode.GET_CONTROLLER_CONFIG,
}


async def gather(config: ClientConfig, now_ms: int) -> ClusterFacts:
    """What name servers, brokers and controllers say and show. Raises ConfigError: TLS settings that cannot be used."""
    account = config.credentials
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(Admin(config=config))
        looker = _Looker(config, stack)
        name_servers = admin.name_servers.addresses
        servers = await looker.look_at_all(
            Kind.NAME_SERVER, name_servers, _all(await admin.name_servers.settings())
        )
        told = (await admin.name_servers.brokers()).done
        places = sorted(
            {place for each in told.values() for place in each},
            key=lambda place: (place.broker_id, place.address),
        )
        # Masters first: a slave that is asked later has no excuse for knowing less.
        masters = dict.fromkeys(place.address for place in places if place.is_master)
        others = dict.fromkeys(place.address for place in places if place.address not in masters)
        ask = partial(_broker, admin)
        brokers = await looker.look_at_all(Kind.BROKER, masters, ask)
        brokers += await looker.look_at_all(Kind.BROKER, others, ask)
        addresses = _controllers(brokers)
        controllers: list[ServerFacts] = []
        if addresses:
            admin = await stack.enter_async_context(Admin(config=config, controllers=addresses))
            controllers = await looker.look_at_all(
                Kind.CONTROLLER, addresses, _all(await admin.controllers.settings())
            )
    return ClusterFacts(
        now_ms=now_ms,
        client=ClientFacts(
            has_account=account.is_set,
            has_tls=config.tls.is_client_enabled,
            verifies_server=config.tls.verifies_server,
        ),
        servers=(*servers, *brokers, *controllers),
        told={address: tuple(found) for address, found in told.items()},
    )


class _Own(NamedTuple):
    """What a server tells the operator; or why it tells nothing."""

    settings: Mapping[str, str] | None = None
    figures: Mapping[str, str] = {}
    refusal: str = ""


AskOwn = Callable[[str], Awaitable[_Own]]


def _all(told: ByServer[dict[str, str]]) -> AskOwn:
    """Settings that were asked of all servers at once."""

    async def ask(address: str) -> _Own:
        if address in told.done:
            return _Own(told.done[address])
        return _Own(refusal=str(told.failed[address]))

    return ask


async def _broker(admin: Admin, address: str) -> _Own:
    target = Target(address=address)
    settings, figures = await admin.brokers.settings(target), await admin.brokers.runtime(target)
    for failure in (*settings.failed.values(), *figures.failed.values()):
        return _Own(refusal=str(failure))
    return _Own(settings.done[address], figures.done[address])


class _Looker:
    """Tries what anybody can try: two strangers, with and without TLS."""

    def __init__(self, config: ClientConfig, stack: AsyncExitStack) -> None:
        self._config = config
        self._plain = RemotingClient()
        self._encrypted = RemotingClient(tls=TlsConfig(is_client_enabled=True))
        for client in (self._plain, self._encrypted):
            stack.push_async_callback(client.close)
        self._room = asyncio.Semaphore(AT_ONCE_MAX)

    async def look_at_all(
        self, kind: Kind, addresses: Iterable[str], ask: AskOwn
    ) -> list[ServerFacts]:
        """Args: ask: what a server tells the operator."""
        chosen = list(addresses)
        if len(chosen) > SERVERS_MAX:
            raise UsageError(
                f"{len(chosen)} addresses of {kind}s; at most {SERVERS_MAX} are looked at"
            )
        return list(
            await asyncio.gather(*(self._look_at(kind, address, ask) for address in chosen))
        )

    async def _look_at(self, kind: Kind, address: str, ask: AskOwn) -> ServerFacts:
        async with self._room:
            try:
                split_address(address)
            except UsageError as error:
                return ServerFacts(kind=kind, address=address, silence=str(error))
            silence = await tcp_failure(address)
            if silence:
                return ServerFacts(kind=kind, address=address, silence=silence)
            tls = await tls_facts(address, self._config.tls)
            without_tls = await self._code(self._plain, kind, address)
            with_tls = None if tls is None else await self._code(self._encrypted, kind, address)
            own = await ask(address)
        return ServerFacts(
            kind=kind,
            address=address,
            refusal=own.refusal,
            takes_plain_text=without_tls is not None,
            serves_strangers=ResponseCode.SUCCESS in (without_tls, with_tls),
            tls=tls,
            settings=own.settings,
            figures=own.figures,
        )

    async def _code(self, client: RemotingClient, kind: Kind, address: str) -> int | None:
        """Of the reply to a stranger; None if there is none."""
        try:
            reply = await client.call(address, Command(code=_SETTINGS[kind]))
        except CometError:
            return None
        return reply.code


def _controllers(brokers: Iterable[ServerFacts]) -> list[str]:
    """Those that the brokers follow."""
    found: dict[str, None] = {}
    for broker in brokers:
        settings = broker.settings or {}
        if settings.get("enableControllerMode") == "true":
            found |= dict.fromkeys(split_addresses(settings.get("controllerAddr", "")))
    return list(found)
