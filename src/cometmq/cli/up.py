"""``cometmq up``: a queue in one command."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import click

from cometmq.access.inner_config import InnerConfig
from cometmq.base import logs
from cometmq.base.errors import CometError, ConfigError, one_line
from cometmq.base.server_command import VERSION
from cometmq.cli.children.dashboard_process import DashboardProcess
from cometmq.cli.children.further_brokers import FurtherBrokers
from cometmq.monitor import event_loop
from cometmq.standalone import INNER_KEY, Place, Standalone

logger = logging.getLogger("cometmq.up")

FIRST: Final = Place(0, 0)


def run(
    *,
    data_directory: str,
    namesrv_port: int,
    broker_port: int,
    bind_address: str,
    brokers: int,
    replicas: int,
    has_controller: bool,
    controller_port: int,
    settings: Sequence[str],
    log_level: str,
    has_dashboard: bool = False,
    dashboard_port: int | None = None,
) -> None:
    """Block until SIGINT or SIGTERM; exit code 1 with one line if it cannot start."""
    logs.configure(level=log_level)
    logger.info("cometmq up version=%s", VERSION)
    try:
        broker_settings = pairs(settings)
        servers = Standalone(
            data_directory,
            namesrv_port=namesrv_port,
            broker_port=broker_port,
            bind_address=bind_address,
            broker_settings=broker_settings,
            slaves=replicas - 1,
            has_controller=has_controller,
            controller_port=controller_port,
            masters_elsewhere=brokers - 1,
        )
        further = [Place(group, 0) for group in range(1, brokers)]
        dashboard = None
        if has_dashboard:
            dashboard = partial(
                _dashboard, data_directory, broker_settings, dashboard_port, log_level
            )
        _warn_of_stores(data_directory, brokers)
        event_loop.run(_serve(servers, further, data_directory, dashboard, log_level))
    except (CometError, OSError) as error:
        print(f"cometmq up: {one_line(error)}", file=sys.stderr)
        raise SystemExit(1) from None


async def _serve(
    servers: Standalone,
    further: Sequence[Place],
    data_directory: str,
    dashboard: Callable[[Standalone], DashboardProcess] | None,
    log_level: str,
) -> None:
    stop = event_loop.end_signal()
    async with servers, AsyncExitStack() as stack:
        others = FurtherBrokers(map(servers.settings_of, further), log_level=log_level)
        stack.push_async_callback(others.stop)
        await others.start(stop)
        if stop.is_set():
            return
        if further:
            await servers.wait_for_masters(place.broker_name for place in [FIRST, *further])
        click.echo(f"name server  {servers.name_server_address}   (give this to clients)")
        if servers.controller_address is not None:
            click.echo(f"controller   {servers.controller_address}")
        for line in _broker_lines(servers, others):
            click.echo(f"broker       {line}")
        click.echo(f"data         {data_directory}")
        if dashboard is not None:
            process = dashboard(servers)
            stack.push_async_callback(process.stop)
            await process.start()
            click.echo(f"dashboard    {process.url}")
        with event_loop.in_service(servers.is_alive, lambda: _dump(servers, others)):
            click.echo("stop         Ctrl-C")
            await others.keep(stop)
        click.echo("stopping")


def _dump(servers: Standalone, others: FurtherBrokers) -> None:
    servers.dump()
    others.dump()


def _warn_of_stores(data_directory: str, brokers: int) -> None:
    """An earlier run had more brokers: nobody gets what is in the stores of those."""
    for group in count(brokers):
        path = Path(data_directory, Place(group, 0).store_name)
        if not path.is_dir():
            return
        logger.warning(
            "store without a broker path=%s; start with --brokers %d to have its messages",
            path,
            group + 1,
        )


def _dashboard(
    data_directory: str,
    broker_settings: Mapping[str, str],
    port: int | None,
    log_level: str,
    servers: Standalone,
) -> DashboardProcess:
    settings = {
        "namesrvAddr": servers.name_server_address,
        "dataPath": f"{data_directory}/dashboard",
    }
    if servers.controller_address is not None:
        settings["controllerAddr"] = servers.controller_address
    account = InnerConfig(text=broker_settings.get(INNER_KEY, "")).credential
    return DashboardProcess(
        port=port,
        settings=settings,
        account={"access_key": account.name, "secret_key": account.secret} if account else None,
        log_level=log_level,
    )


def _broker_lines(servers: Standalone, others: FurtherBrokers) -> Iterator[str]:
    """A broker that is alone has neither a name nor a role worth telling."""
    if others.names:
        addresses = {FIRST.broker_name: servers.broker_address, **others.addresses}
        for name, address in addresses.items():
            yield f"{address}   {name}"
        return
    for broker in servers.brokers:
        identity = broker.live.current.identity
        number = f" {identity.broker_id}" if identity.is_slave else ""
        role = f"   {identity.role}{number}" if len(servers.brokers) > 1 else ""
        yield f"{broker.address}{role}"


def pairs(settings: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE texts as a mapping. Raises ConfigError."""
    pairs: dict[str, str] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set takes KEY=VALUE, not {text!r}")
        pairs[key.strip()] = value.strip()
    return pairs
