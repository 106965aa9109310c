"""The ``cometmq`` command: everything that does not have a RocketMQ command name."""

from __future__ import annotations

import click

from cometmq.base.server_command import log_level_option, version_option
from cometmq.cli.backup.backup import backup
from cometmq.cli.consume import consume
from cometmq.cli.dashboard import dashboard
from cometmq.cli.doctor.doctor import doctor
from cometmq.cli.hand_over import hand_over
from cometmq.cli.pipeline import pipeline
from cometmq.cli.produce import produce
from cometmq.cli.secure.init import init
from cometmq.cli.service.service import service
from cometmq.cli.top.top import top

PORT = click.IntRange(0, 65535)
BROKERS_MAX = 16


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@version_option("cometmq")
def main() -> None:
    """CometMQ: RocketMQ, rewritten in Python.

    The servers have RocketMQ's names: mqnamesrv, mqbroker, mqcontroller, mqshutdown.
    """


@main.command(short_help="Run a name server and a broker until Ctrl-C.")
@click.option(
    "--data",
    "data_directory",
    default="./cometmq-data",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory for all data of the servers.",
)
@click.option(
    "--namesrv-port",
    default=9876,
    show_default=True,
    type=PORT,
    help="Port of the name server; 0 takes any free one.",
)
@click.option(
    "--broker-port",
    default=10911,
    show_default=True,
    type=PORT,
    help="Port of the broker; 0 takes any free one. Further brokers and slaves follow in steps of 10.",
)
@click.option(
    "--brokers",
    default=1,
    show_default=True,
    type=click.IntRange(1, BROKERS_MAX),
    help="Brokers that share the load, for a machine with several processors: the further ones run in processes of "
    "their own, each with a store of its own. Not together with --replicas or --controller.",
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
    type=PORT,
    help="Port of the controller, if there is one.",
)
@click.option(
    "--bind",
    "bind_address",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on, also given to clients. Beyond loopback: with accounts, or --set allowAnonymous=true.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A broker.conf setting; may be repeated.",
)
@click.option(
    "--dashboard/--no-dashboard",
    "has_dashboard",
    default=True,
    show_default=True,
    help="Serve the dashboard, too: on loopback, in a process of its own.",
)
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65535),
    help="Port of the dashboard. By default 8090, or a free one if that is taken.",
)
@log_level_option
def up(
    data_directory: str,
    namesrv_port: int,
    broker_port: int,
    bind_address: str,
    brokers: int,
    replicas: int,
    has_controller: bool,
    controller_port: int,
    settings: tuple[str, ...],
    has_dashboard: bool,
    dashboard_port: int | None,
    log_level: str,
) -> None:
    """Run a name server and a broker, or a master with its slaves, in this process until Ctrl-C.

    Further brokers (--brokers) run in processes of their own. They end with this one, and are started again when they
    die.

    The servers log to standard error. Messages stay in the data directory: the next start continues with them.

    \b
    Exit code: 0 stopped by Ctrl-C or SIGTERM; 1 the servers could not start, or a further broker died again and again;
      2 a wrong option.

    \b
    Examples:
      cometmq up
      cometmq up --data ./my-queue --set flushDiskType=SYNC_FLUSH --log-level WARNING
      cometmq up --replicas 3 --controller
      cometmq up --brokers 4
    """
    if brokers > 1 and (replicas > 1 or has_controller):
        raise click.UsageError(
            "--brokers goes with neither --replicas nor --controller: for groups of a master and its slaves, start "
            "each broker with mqbroker"
        )
    try:
        from cometmq.cli.up import run
    except ImportError as error:
        raise click.ClickException(str(error)) from None

    run(
        data_directory=data_directory,
        namesrv_port=namesrv_port,
        broker_port=broker_port,
        bind_address=bind_address,
        brokers=brokers,
        replicas=replicas,
        has_controller=has_controller,
        controller_port=controller_port,
        settings=settings,
        log_level=log_level,
        has_dashboard=has_dashboard,
        dashboard_port=dashboard_port,
    )


@main.command(short_help="Show the main features on a temporary cluster.")
@click.option(
    "--messages", "count", default=1000, show_default=True, help="Number of messages to send."
)
@click.option("--stay", "stays", is_flag=True, help="Keep servers and dashboard until Ctrl-C.")
def demo(count: int, stays: bool) -> None:
    """Start a cluster, send, consume, crash and restart it, run a pipeline, and show what happened.

    Everything happens in a temporary directory, on free ports, and takes about half a minute. The pipeline needs the
    packages of cometmq[spark] and is left out without them.

    \b
    Exit code: 0 everything went as expected; 1 something did not.

    \b
    Examples:
      cometmq demo --messages 5000
      cometmq demo --stay
    """
    from cometmq.cli.demo.demo import run

    run(count, stays=stays)


main.add_command(init)
main.add_command(doctor)
main.add_command(dashboard)
main.add_command(top)
main.add_command(produce)
main.add_command(consume)
main.add_command(pipeline)
main.add_command(backup)
main.add_command(hand_over)
main.add_command(service)
