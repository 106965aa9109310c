"""``mqnamesrv``: flags, config file, signals. The server itself is ``server.NameServer``."""

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
from cometmq.controller.server import Controller
from cometmq.model.address import join_address
from cometmq.monitor import event_loop
from cometmq.monitor.monitor_config import pages_of
from cometmq.namesrv.namesrv_config import NamesrvConfig, load_namesrv_config, texts
from cometmq.namesrv.server import NameServer
from cometmq.namesrv.with_controller import (
    NameServerWithController,
    controller_keys,
    load_controller,
)

_KV_PATH = "~/namesrv/kvConfig.json"
_CONTROLLER_STORE_PATH = "~/DLedgerController"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@config_options
@click.option("-n", "ignored", metavar="ADDR", help="Accepted and ignored, as in RocketMQ.")
@log_options
@version_option("mqnamesrv")
def main(
    config_file: str | None,
    print_config: bool,
    ignored: str | None,
    log_level: str,
    log_file: str | None,
    rocketmq_logs: bool,
) -> None:
    """Run a CometMQ name server until SIGTERM or Ctrl-C.

    \b
    Exit code: 0 stopped; 1 it could not start, or a setting is wrong; 2 a wrong option.

    \b
    Examples:
      mqnamesrv
      mqnamesrv -c namesrv.conf --log-file namesrv.log
    """
    with failing_in_one_line():
        kv_path = {"kvConfigPath": str(Path(_KV_PATH).expanduser())}
        values = kv_path | config_values(config_file)
        config, without_effect = load_namesrv_config(values)
        controller = None
        if config.has_controller:
            store = {"controllerStorePath": str(Path(_CONTROLLER_STORE_PATH).expanduser())}
            controller = load_controller(store | values)
            without_effect = [key for key in without_effect if key not in controller_keys()]
        if print_config:
            click.echo(render_properties(texts(config)), nl=False)
            return
        begin(
            "cometmq.namesrv",
            log_level=log_level,
            log_file=log_file_of("namesrv", log_file, rocketmq_logs),
            limits=config.log,
            without_effect=without_effect,
        )
        if controller is None:
            event_loop.run_server(
                lambda: NameServer(config), lambda server: _greeting(server, config, config_file)
            )
        else:
            settings = controller
            event_loop.run_server(
                lambda: NameServerWithController(config, settings),
                lambda both: _greeting(both.name_server, config, config_file, both.controller),
            )


def _greeting(
    server: NameServer,
    config: NamesrvConfig,
    config_file: str | None,
    controller: Controller | None = None,
) -> str:
    host = config.bind_address or "0.0.0.0"
    lines = [
        f"The Name Server boot success. CometMQ {VERSION}",
        f"  listens on      {join_address(host, server.port)}",
        f"  key-values in   {config.kv_path or 'memory only'}",
        f"  configuration   {config_file or 'defaults (give a file with -c)'}",
    ]
    if server.address_service_port is not None:
        url = f"http://{join_address(host, server.address_service_port)}/rocketmq/nsaddr"
        lines.append(f"  address list    {url}")
    if server.metrics_address is not None:
        lines.append(f"  {'pages':<15} http://{server.metrics_address}: {pages_of(config.monitor)}")
    if controller is not None:
        lines.append(f"  controller      {join_address(host, controller.port)}")
    if is_open_door(config.access, config.bind_address):
        lines.append(
            "  WARNING         allowAnonymous: whoever reaches this port may change routes"
        )
    lines.append("  to stop it      Ctrl-C, or: mqshutdown namesrv")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
