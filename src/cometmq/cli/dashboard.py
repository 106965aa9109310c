"""``cometmq dashboard``: the dashboard as a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from cometmq.base.server_command import (
    VERSION,
    begin,
    failing_in_one_line,
    log_level_option,
    read_config_file,
)

if TYPE_CHECKING:
    from cometmq.dashboard.server import Dashboard

THREADS: Final = 3


@click.command(short_help="Show clusters in the browser, and mend them there.")
@click.option(
    "-n",
    "--name-server",
    "name_servers",
    metavar="HOST:PORT",
    help="Name servers, separated by ';'. Several sets of them: prod=HOST:PORT,test=HOST:PORT. By default those of "
    "the file, else 127.0.0.1:9876.",
)
@click.option(
    "-c",
    "--config",
    "config_file",
    metavar="FILE",
    help="Settings of the dashboard, as Java properties; docs/reference/settings.md lists them.",
)
@click.option(
    "--client-config",
    "client_file",
    metavar="FILE",
    help="Account and TLS with which the dashboard asks the servers: the tools.conf of `cometmq init`.",
)
@click.option("--bind", "bind_address", metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", "port", type=int, help="Port to listen on; 0 takes any free one.")
@click.option(
    "--data", "data_path", metavar="DIRECTORY", help="Where figures and alert rules are kept."
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated."
)
@click.option("-p", "print_config", is_flag=True, help="Print the settings and exit.")
@click.option("--from-stdin", is_flag=True, hidden=True, help="How `cometmq up` starts it.")
@click.option("--log-file", metavar="FILE", help="Log to a file instead of standard error.")
@log_level_option
def dashboard(
    name_servers: str | None,
    config_file: str | None,
    client_file: str | None,
    bind_address: str | None,
    port: int | None,
    data_path: str | None,
    settings: Sequence[str],
    print_config: bool,
    from_stdin: bool,
    log_level: str,
    log_file: str | None,
) -> None:
    """Serve the dashboard until Ctrl-C: what is wrong, why, and the button that mends it.

    On loopback, nobody needs to log in. Beyond it, accounts of the brokers log in, over TLS. The first line on
    standard output says that it answers, the next one where.

    \b
    Exit code: 0 stopped by Ctrl-C or SIGTERM; 1 it could not start; 2 a wrong option.

    \b
    Examples:
      cometmq dashboard
      cometmq dashboard -n 10.0.0.1:9876 --data /var/lib/cometmq/dashboard
      cometmq dashboard -c dashboard.conf --client-config tools.conf
    """
    from cometmq.base.log_rates import LogLimits
    from cometmq.base.properties_file import render_properties
    from cometmq.base.settings import render, rows, value_of
    from cometmq.cli.children.until_orphaned import read_told, serve_until_orphaned
    from cometmq.cli.up import pairs
    from cometmq.client import ClientConfig, load_client_config
    from cometmq.client.client_config import Credentials
    from cometmq.dashboard.dashboard_config import DashboardConfig, load_dashboard_config
    from cometmq.dashboard.server import Dashboard
    from cometmq.monitor import event_loop

    given = {
        "namesrvAddr": name_servers,
        "clientConfig": client_file,
        "bindAddress": bind_address,
        "listenPort": None if port is None else str(port),
        "dataPath": data_path,
    }
    with failing_in_one_line():
        told = read_told() if from_stdin else {}
        values = {
            **read_config_file(config_file),
            **{key: value for key, value in given.items() if value is not None},
            **pairs(settings),
            **told.get("settings", {}),
        }
        config = load_dashboard_config(values)
        if print_config:
            shown = {row.key: render(value_of(config, row)) for row in rows(DashboardConfig)}
            click.echo(render_properties(shown), nl=False)
            return
        client = load_client_config(config.client_path) if config.client_path else ClientConfig()
        if "account" in told:
            client = ClientConfig(credentials=Credentials(**told["account"]))
        listening = socket.socket(fileno=told["descriptor"]) if "descriptor" in told else None
        begin(
            "cometmq.dashboard",
            log_level=log_level,
            log_file=log_file,
            limits=LogLimits(),
            without_effect=(),
        )
        if listening is None:
            event_loop.run_server(lambda: _with_few_threads(Dashboard(config, client)), _greeting)
        else:
            handed = partial(Dashboard, config, client, listening=listening)
            event_loop.run(serve_until_orphaned(lambda: _with_few_threads(handed())))


def _with_few_threads(server: Dashboard) -> Dashboard:
    """Threads only read and write small files, now and then; each more of them costs memory."""
    from concurrent.futures import ThreadPoolExecutor

    workers = ThreadPoolExecutor(THREADS, thread_name_prefix="cometmq-dashboard")
    asyncio.get_running_loop().set_default_executor(workers)
    return server


def _greeting(server: Dashboard) -> str:
    config = server.config
    lines = [
        f"The dashboard is up. CometMQ {VERSION}",
        f"  open            {server.url}",
        f"  name servers    {config.name_servers}",
        f"  data            {config.data_path or 'in memory only (give a directory with --data)'}",
        f"  login           {'accounts of the brokers' if server.desk.guard.is_login_required else 'none: loopback'}",
    ]
    if config.is_read_only:
        lines.append("  changes         refused (readOnly)")
    lines.append("  to stop it      Ctrl-C")
    return "\n".join(lines)
