"""``mqcontroller``: flags, config file, signals. The server itself is ``server.Controller``."""

from __future__ import annotations

from pathlib import Path

import click

from cometmq.access.door.open_door import is_open_door
from cometmq.base.properties_file import render_properties
from cometmq.base.server_command import (
    VERSION,
    begin,
    config_options,
    config_values,
    failing_in_one_line,
    log_file_of,
    log_options,
    version_option,
)
from cometmq.controller.controller_config import SCHEMA, ControllerConfig
from cometmq.controller.server import Controller
from cometmq.monitor import event_loop
from cometmq.monitor.monitor_config import pages_of

_STORE_PATH = "~/DLedgerController"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@config_options
@log_options
@version_option("mqcontroller")
def main(
    config_file: str | None,
    print_config: bool,
    log_level: str,
    log_file: str | None,
    rocketmq_logs: bool,
) -> None:
    """Run a CometMQ controller until SIGTERM or Ctrl-C.

    \b
    Exit code: 0 stopped; 1 it could not start, or a setting is wrong; 2 a wrong option.

    \b
    Example:
      mqcontroller -c controller.conf --log-file controller.log
    """
    with failing_in_one_line():
        config, without_effect = _load(config_file)
        if print_config:
            click.echo(render_properties(SCHEMA.texts(config)), nl=False)
            return
        begin(
            "cometmq.controller",
            log_level=log_level,
            log_file=log_file_of("controller", log_file, rocketmq_logs),
            limits=config.log,
            without_effect=without_effect,
        )
        event_loop.run_server(
            lambda: Controller(config), lambda server: _greeting(server, config, config_file)
        )


def _load(config_file: str | None) -> tuple[ControllerConfig, list[str]]:
    return SCHEMA.load(
        {
            "controllerStorePath": str(Path(_STORE_PATH).expanduser()),
            **config_values(config_file),
        }
    )


def _greeting(server: Controller, config: ControllerConfig, config_file: str | None) -> str:
    peer = server.own_peer
    lines = [
        f"The Controller Server boot success. CometMQ {VERSION}",
        f"  listens on      {config.bind_address or '0.0.0.0'}, port {server.port}",
        f"  brokers use     controllerAddr={peer.host}:{peer.port}",
        f"  decisions in    {_place(config)}",
        f"  configuration   {config_file or 'defaults (give a file with -c)'}",
    ]
    if server.metrics_address is not None:
        lines.append(f"  {'pages':<15} http://{server.metrics_address}: {pages_of(config.monitor)}")
    if is_open_door(config.access, config.bind_address):
        lines.append(
            "  WARNING         allowAnonymous: whoever reaches this port may change masters"
        )
    lines.append("  to stop it      Ctrl-C, or: mqshutdown controller")
    return "\n".join(lines)


def _place(config: ControllerConfig) -> str:
    etcd = config.etcd
    return f"etcd, {etcd.prefix} at {etcd.endpoints}" if etcd.endpoints else config.store_path


if __name__ == "__main__":
    main()
