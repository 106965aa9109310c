"""The ``cometmq`` command: everything that does not have a RocketMQ command name."""

from __future__ import annotations

import click

from cometmq import __version__
from cometmq.cli.consume import consume
from cometmq.cli.pipeline import pipeline
from cometmq.cli.produce import produce


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cometmq")
def main() -> None:
    """CometMQ: RocketMQ, rewritten in Python.

    The servers have RocketMQ's names: mqnamesrv, mqbroker, mqcontroller, mqshutdown.
    """


@main.command()
@click.option(
    "--data",
    "data_directory",
    default="./cometmq-data",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory for all data of the servers.",
)
@click.option("--namesrv-port", default=9876, show_default=True, help="Port of the name server.")
@click.option(
    "--broker-port",
    default=10911,
    show_default=True,
    help="Port of the broker. Slaves follow in steps of 10.",
)
@click.option(
    "--replicas",
    default=1,
    show_default=True,
    type=click.IntRange(1, 8),
    help="Copies of each message: a master and, with 2 or more, slaves that follow it. The master is then a "
    "SYNC_MASTER: it answers a send when a slave has the message, too.",
)
@click.option(
    "--controller",
    "has_controller",
    is_flag=True,
    help="Have a controller decide which replica is the master, and elect another one if it is lost.",
)
@click.option(
    "--controller-port",
    default=9878,
    show_default=True,
    help="Port of the controller, if there is one.",
)
@click.option(
    "--bind",
    "bind_address",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on, also given to clients.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A broker.conf setting; may be repeated.",
)
@click.option(
    "--log-level", default="INFO", show_default=True, help="DEBUG, INFO, WARNING or ERROR."
)
def up(
    data_directory: str,
    namesrv_port: int,
    broker_port: int,
    bind_address: str,
    replicas: int,
    has_controller: bool,
    controller_port: int,
    settings: tuple[str, ...],
    log_level: str,
) -> None:
    """Run a name server and a broker, or a master with its slaves, in this process until Ctrl-C."""
    try:
        from cometmq.cli.up import run
    except ImportError as error:
        raise click.ClickException(str(error)) from None

    run(
        data_directory=data_directory,
        namesrv_port=namesrv_port,
        broker_port=broker_port,
        bind_address=bind_address,
        replicas=replicas,
        has_controller=has_controller,
        controller_port=controller_port,
        settings=settings,
        log_level=log_level,
    )


@main.command()
@click.option(
    "--messages", "count", default=1000, show_default=True, help="Number of messages to send."
)
def demo(count: int) -> None:
    """Start a cluster, send, consume, crash and restart it, run a pipeline, and show what happened."""
    from cometmq.cli.demo import run

    run(count)


main.add_command(produce)
main.add_command(consume)
main.add_command(pipeline)
