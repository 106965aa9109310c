"""``mqbroker``: flags, config file, signals. The broker itself is ``server.Broker``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from cometmq.access.door.open_door import is_open_door
from cometmq.base.properties_file import render_properties
from cometmq.base.server_command import (
    VERSION,
    begin,
    failing_in_one_line,
    log_file_of,
    log_options,
    read_config_file,
    version_option,
)
from cometmq.base.settings import render, value_of
from cometmq.broker.config.broker_config import (
    BrokerConfig,
    broker_rows,
    config_text,
    load_broker_config,
)
from cometmq.broker.server import Broker
from cometmq.monitor import event_loop
from cometmq.monitor.monitor_config import pages_of

IMPORTANT: Final = (
    "namesrvAddr",
    "brokerIP1",
    "bindAddress",
    "listenPort",
    "brokerClusterName",
    "brokerName",
    "brokerId",
    "brokerRole",
    "brokerPermission",
    "defaultTopicQueueNums",
    "autoCreateTopicEnable",
    "autoCreateTopicOnAllMasters",
    "autoCreateSubscriptionGroup",
    "storePathRootDir",
    "storePathCommitLog",
    "flushDiskType",
    "flushIntervalCommitLog",
    "deleteWhen",
    "fileReservedTime",
    "maxMessageSize",
    "registerNameServerPeriod",
)
"""What -m prints: the settings an operator looks at first."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-n",
    "name_servers",
    metavar="ADDR",
    envvar="NAMESRV_ADDR",
    show_envvar=True,
    help="Name servers, such as 127.0.0.1:9876;10.0.0.2:9876. Overrides the configuration file.",
)
@click.option(
    "-c",
    "config_file",
    metavar="FILE",
    help="Configuration file (broker.conf): Java properties with RocketMQ's keys. Changes made over"
    " the network are written to it.",
)
@click.option("-p", "print_all", is_flag=True, help="Print the whole configuration and exit.")
@click.option(
    "-m", "print_important", is_flag=True, help="Print the most important settings and exit."
)
@log_options
@version_option("mqbroker")
def main(
    name_servers: str | None,
    config_file: str | None,
    print_all: bool,
    print_important: bool,
    log_level: str,
    log_file: str | None,
    rocketmq_logs: bool,
) -> None:
    """Run a CometMQ broker until SIGTERM or Ctrl-C.

    \b
    Exit code: 0 stopped; 1 it could not start, or a setting is wrong; 2 a wrong option.

    \b
    Examples:
      mqbroker -n 127.0.0.1:9876
      mqbroker -n '10.0.0.1:9876;10.0.0.2:9876' -c broker.conf --log-file broker.log
      mqbroker -c broker.conf -p
    """
    with failing_in_one_line():
        values = read_config_file(config_file)
        if name_servers:
            values["namesrvAddr"] = name_servers
        if home := os.environ.get("ROCKETMQ_HOME"):
            values.setdefault("rocketmqHome", home)
        config, without_effect = load_broker_config(values)
        ignored = {key: values[key] for key in without_effect}
        if print_all or print_important:
            text = config_text(config, ignored) if print_all else _important(config)
            click.echo(text, nl=False)
            return
        begin(
            "cometmq.broker",
            log_level=log_level,
            log_file=log_file_of("broker", log_file, rocketmq_logs),
            limits=config.log,
            without_effect=without_effect,
        )
        path = str(Path(config_file).absolute()) if config_file else None
        event_loop.run_server(
            lambda: Broker(config, config_path=path, ignored=ignored),
            lambda broker: _greeting(broker, config, config_file),
        )


def _important(config: BrokerConfig) -> str:
    known = broker_rows()
    return render_properties({key: render(value_of(config, known[key])) for key in IMPORTANT})


def _greeting(broker: Broker, config: BrokerConfig, config_file: str | None) -> str:
    identity, network = config.identity, config.network
    vip = f" and {network.vip_port} (VIP)" if network.vip_port is not None else ""
    lines = [
        f"The broker[{identity.broker_name}, {broker.address}] boot success. CometMQ {VERSION}",
        f"  cluster         {identity.cluster_name}",
        f"  listens on      {network.bind_address}, ports {broker.port}{vip}",
        f"  name servers    {network.name_servers or 'none: give them with -n'}",
        f"  data in         {config.store.root}",
        f"  flush           {config.store.flush.disk_type}",
        f"  configuration   {config_file or 'defaults (give a file with -c)'}",
    ]
    if broker.metrics_address is not None:
        lines.append(f"  {'pages':<15} http://{broker.metrics_address}: {pages_of(config.monitor)}")
    if is_open_door(config.access, network.bind_address):
        lines.append(
            "  WARNING         allowAnonymous: whoever reaches these ports may read, write and delete"
        )
    lines.append("  to stop it      Ctrl-C, or: mqshutdown broker")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
