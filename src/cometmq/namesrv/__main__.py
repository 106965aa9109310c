"""``mqnamesrv``: flags, config file, signals. The server itself is ``server.NameServer``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from cometmq import __version__
from cometmq.base import logs
from cometmq.base.errors import CometError, ConfigError
from cometmq.base.properties_file import decode_file, parse_properties, render_properties
from cometmq.namesrv.namesrv_config import NamesrvConfig, load_namesrv_config, texts
from cometmq.namesrv.server import NameServer
from cometmq.remoting import event_loop

_KV_PATH = "~/namesrv/kvConfig.json"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-c",
    "config_file",
    metavar="FILE",
    help="Configuration file: Java properties with RocketMQ's keys. Changes made over the network are written to it.",
)
@click.option("-p", "print_config", is_flag=True, help="Print the configuration and exit.")
@click.option("-n", "ignored", metavar="ADDR", help="Accepted and ignored, as in RocketMQ.")
@click.option(
    "--log-level",
    default="INFO",
    show_default=True,
    envvar="COMETMQ_LOG_LEVEL",
    show_envvar=True,
    type=click.Choice(logs.LEVELS, case_sensitive=False),
)
@click.option(
    "--log-file",
    metavar="FILE",
    envvar="COMETMQ_LOG_FILE",
    show_envvar=True,
    help=f"Log to a file ({logs.FILE_COUNT} x {logs.FILE_BYTES_MAX >> 20} MiB) instead of standard error.",
)
@click.version_option(__version__, prog_name="mqnamesrv")
def main(
    config_file: str | None,
    print_config: bool,
    ignored: str | None,
    log_level: str,
    log_file: str | None,
) -> None:
    """Run a CometMQ name server until SIGTERM or Ctrl-C."""
    try:
        config, without_effect = _load(config_file)
        if print_config:
            click.echo(render_properties(texts(config)), nl=False)
            return
        if not __debug__:
            raise ConfigError("this server relies on its assertions: run it without python -O")
        logs.configure(level=log_level, file=log_file)
        if without_effect:
            logging.getLogger("cometmq.namesrv").warning(
                "settings without effect here keys=%s", ",".join(without_effect)
            )
        event_loop.run(_serve(config, config_file))
    except (CometError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _load(config_file: str | None) -> tuple[NamesrvConfig, list[str]]:
    values = {"kvConfigPath": str(Path(_KV_PATH).expanduser())}
    if config_file is not None:
        try:
            text = decode_file(Path(config_file).read_bytes())
        except OSError as error:
            raise ConfigError(f"cannot read the configuration {config_file}: {error}") from None
        values |= parse_properties(text)
        # As in RocketMQ, changes are written to the file that was read.
        values["configStorePath"] = str(Path(config_file).absolute())
    else:
        values["configStorePath"] = ""
    return load_namesrv_config(values)


async def _serve(config: NamesrvConfig, config_file: str | None) -> None:
    stop = event_loop.end_signal()
    server = NameServer(config)
    await server.start()
    event_loop.settle()
    try:
        click.echo(_greeting(server, config, config_file))
        await stop.wait()
        click.echo("stopping")
    finally:
        await server.stop()


def _greeting(server: NameServer, config: NamesrvConfig, config_file: str | None) -> str:
    host = config.bind_address or "0.0.0.0"
    lines = [
        f"The Name Server boot success. CometMQ {__version__}",
        f"  listens on      {_address(host, server.port)}",
        f"  key-values in   {config.kv_path or 'memory only'}",
        f"  configuration   {config_file or 'defaults (give a file with -c)'}",
    ]
    if server.address_service_port is not None:
        url = f"http://{_address(host, server.address_service_port)}/rocketmq/nsaddr"
        lines.append(f"  address list    {url}")
    if not config.is_loopback:
        lines.append(
            "  WARNING         beyond loopback: whoever reaches this port may change routes"
        )
    lines.append("  to stop it      Ctrl-C, or: mqshutdown namesrv")
    return "\n".join(lines)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


if __name__ == "__main__":
    main()
