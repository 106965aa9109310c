"""``cometmq up``: a queue in one command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from cometmq.base import logs
from cometmq.base.errors import CometError, ConfigError
from cometmq.broker.server import Broker
from cometmq.remoting import event_loop
from cometmq.standalone import Standalone


def run(
    *,
    data_directory: str,
    namesrv_port: int,
    broker_port: int,
    bind_address: str,
    replicas: int,
    has_controller: bool,
    controller_port: int,
    settings: Sequence[str],
    log_level: str,
) -> None:
    """Block until SIGINT or SIGTERM; exit code 1 with one line if it cannot start."""
    logs.configure(level=log_level)
    try:
        servers = Standalone(
            data_directory,
            namesrv_port=namesrv_port,
            broker_port=broker_port,
            bind_address=bind_address,
            broker_settings=_pairs(settings),
            slaves=replicas - 1,
            has_controller=has_controller,
            controller_port=controller_port,
        )
        event_loop.run(_serve(servers, data_directory))
    except (CometError, OSError) as error:
        print(f"cometmq up: {error}", file=sys.stderr)
        raise SystemExit(1) from None


async def _serve(servers: Standalone, data_directory: str) -> None:
    stop = event_loop.end_signal()
    async with servers:
        click.echo(f"name server  {servers.name_server_address}   (give this to clients)")
        if servers.controller_address is not None:
            click.echo(f"controller   {servers.controller_address}")
        for broker in servers.brokers:
            click.echo(f"broker       {_line(broker, len(servers.brokers))}")
        click.echo(f"data         {data_directory}")
        click.echo("stop         Ctrl-C")
        await stop.wait()
        click.echo("stopping")


def _line(broker: Broker, brokers: int) -> str:
    """A broker that is alone has no role worth telling."""
    identity = broker.live.current.identity
    if brokers == 1:
        return broker.address
    number = f" {identity.broker_id}" if identity.is_slave else ""
    return f"{broker.address}   {identity.role}{number}"


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set takes KEY=VALUE, not {text!r}")
        pairs[key.strip()] = value.strip()
    return pairs
