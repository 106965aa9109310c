"""``mqcontroller``: flags, config file, signals. The server itself is ``server.Controller``."""

from __future__ import annotations

from pathlib import Path

import click

from cometmq import __version__
from cometmq.base.properties_file import render_properties
from cometmq.base.server_command import (
    begin,
    config_options,
    config_values,
    failing_in_one_line,
    log_options,
)
from cometmq.controller.controller_config import SCHEMA, ControllerConfig
from cometmq.controller.server import Controller
from cometmq.remoting import event_loop

_STORE_PATH = "~/DLedgerController"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@config_options
@log_options
@click.version_option(__version__, prog_name="mqcontroller")
def main(config_file: str | None, print_config: bool, log_level: str, log_file: str | None) -> None:
    """Run a CometMQ controller until SIGTERM or Ctrl-C."""
    with failing_in_one_line():
        config, without_effect = _load(config_file)
        if print_config:
            click.echo(render_properties(SCHEMA.texts(config)), nl=False)
            return
        begin(
            "cometmq.controller",
            log_level=log_level,
            log_file=log_file,
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
        f"The Controller Server boot success. CometMQ {__version__}",
        f"  listens on      {config.bind_address or '0.0.0.0'}, port {server.port}",
        f"  brokers use     controllerAddr={peer.host}:{peer.port}",
        f"  decisions in    {_place(config)}",
        f"  configuration   {config_file or 'defaults (give a file with -c)'}",
    ]
    if not config.is_loopback:
        lines.append(
            "  WARNING         beyond loopback: whoever reaches this port may change masters"
        )
    lines.append("  to stop it      Ctrl-C, or: mqshutdown controller")
    return "\n".join(lines)


def _place(config: ControllerConfig) -> str:
    etcd = config.etcd
    return f"etcd, {etcd.prefix} at {etcd.endpoints}" if etcd.endpoints else config.store_path


if __name__ == "__main__":
    main()
