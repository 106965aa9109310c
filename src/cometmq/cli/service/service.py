"""The commands. ``unit`` says what is written, ``systemd`` writes it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

import click

from cometmq.base.errors import ConfigError
from cometmq.cli.client_command import FAILED, exit_codes
from cometmq.cli.service.unit import Kind, Service, unit_text, writable_directories

PROGRAM: Final = "cometmq service"
DATA: Final = "/var/lib/cometmq"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

UNIT_DIRECTORY: Final = "/etc/systemd/system"

unit_directory_option = click.option(
    "--unit-directory",
    default=UNIT_DIRECTORY,
    show_default=True,
    metavar="DIR",
    help="Where unit files are.",
)


@click.group()
def service() -> None:
    """Run name server, broker and controller as systemd services.

    \b
    Examples:
      cometmq service install broker -c /etc/cometmq/broker.conf --dry-run
      sudo cometmq service install broker -c /etc/cometmq/broker.conf
      sudo systemctl enable --now cometmq-broker
      cometmq service status
      sudo cometmq service uninstall cometmq-broker
    """


@service.command()
@click.argument("kind", type=click.Choice([kind.value for kind in Kind]))
@click.option(
    "-c",
    "--config",
    "config_file",
    required=True,
    metavar="FILE",
    help="Configuration file of the server. It is read to find out where it writes.",
)
@click.option("--name", help="Name of the unit.  [default: cometmq-KIND]")
@click.option(
    "--user",
    default="cometmq",
    show_default=True,
    help="Who the server runs as; the group has the same name.",
)
@click.option(
    "--data",
    default=DATA,
    show_default=True,
    metavar="DIR",
    help="Its home directory: what its configuration says nothing about is kept there.",
)
@unit_directory_option
@click.option(
    "--dry-run", is_flag=True, help="Print the unit and what would be done; change nothing."
)
def install(
    kind: str,
    config_file: str,
    name: str | None,
    user: str,
    data: str,
    unit_directory: str,
    dry_run: bool,
) -> None:
    """Write the unit of one server: namesrv, broker or controller.

    systemd starts it, waits until it is ready, watches that it stays alive, and restarts it. It may write to its data
    and its configuration, and nowhere else. It runs the programs of this environment: install again when that moves.
    Several brokers on one machine get a --name and a configuration each. Installing again renews the unit.

    \b
    Exit code: 0 done; 1 systemd or the disk refused; 2 a wrong option, or not root.
    """
    from cometmq.cli.service import systemd

    with exit_codes(PROGRAM):
        wanted = _service(Kind(kind), config_file, name, user, data)
        text = unit_text(wanted)
        path = Path(unit_directory, f"{wanted.name}.service")
        if dry_run:
            click.echo(text, nl=False)
            click.echo(_steps(wanted, path), err=True)
            return
        if os.geteuid():
            raise ConfigError("installing a service needs root: run it with sudo, or see --dry-run")
        account = systemd.find_account(user)
        systemd.make_directories(wanted, account)
        is_new = systemd.write_unit(Path(unit_directory), wanted.name, text)
        systemd.systemctl("daemon-reload")
        click.echo(f"{'written' if is_new else 'renewed'}  {path}")
        begin = "enable --now" if is_new else "restart"
        click.echo(f"next     systemctl {begin} {wanted.name}")
        click.echo(f"logs     journalctl -u {wanted.name} -f")


@service.command()
@click.argument("name")
@unit_directory_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def uninstall(name: str, unit_directory: str, yes: bool) -> None:
    """Stop a service and remove its unit. Its data and its configuration stay.

    \b
    Exit code: 0 done; 1 systemd or the disk refused, or the answer was no; 2 there is no such service.
    """
    from cometmq.cli.service import systemd

    with exit_codes(PROGRAM):
        directory = Path(unit_directory)
        name = name.removesuffix(".service")
        path = directory / f"{name}.service"
        if not systemd.is_ours(path):
            known = ", ".join(systemd.our_units(directory)) or "none"
            raise ConfigError(
                f"expected a unit that `cometmq service install` has written, got {name}; there are: {known}"
            )
        if not yes:
            click.confirm(f"Stop {name} and remove {path}?", abort=True)
        systemd.systemctl("disable", "--now", f"{name}.service")
        path.unlink()
        systemd.systemctl("daemon-reload")
        click.echo(f"removed  {path}; data and configuration are still there")


@service.command()
@unit_directory_option
def status(unit_directory: str) -> None:
    """Show the installed services.

    \b
    Exit code: 0 all are active; 1 some are not, or there is none.
    """
    from cometmq.cli.service import systemd

    with exit_codes(PROGRAM):
        names = systemd.our_units(Path(unit_directory))
        states = [systemd.state_of(name) for name in names]
    if not states:
        click.echo(f"no service is installed in {unit_directory}", err=True)
        raise SystemExit(FAILED)
    click.echo(f"{'SERVICE':24} {'STATE':22} {'PID':>8} {'RESTARTS':>8}  TELLS")
    for one in states:
        state = f"{one.active} ({one.sub})"
        click.echo(f"{one.name:24} {state:22} {one.pid or '-':>8} {one.restarts:>8}  {one.text}")
    if not all(one.is_active for one in states):
        raise SystemExit(FAILED)


def _service(kind: Kind, config_file: str, name: str | None, user: str, data: str) -> Service:
    """Raises ConfigError."""
    from cometmq.base.server_command import read_config_file

    config = str(Path(config_file).absolute())
    name = name or f"cometmq-{kind.value}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"--name {name!r}: expected letters, digits, dots, dashes and underscores"
        )
    if not data.startswith("/"):
        raise ConfigError(f"--data {data}: expected an absolute path")
    program = _program(kind)
    return Service(
        kind=kind,
        name=name,
        program=str(program),
        config_file=config,
        user=user,
        data=data,
        writable=writable_directories(kind, read_config_file(config), config, data),
    )


def _program(kind: Kind) -> Path:
    """The server's command beside ours, by the path that ours was called by: it may be a link that upgrades change."""
    own = Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent
    for directory in own:
        program = directory / f"mq{kind.value}"
        if program.exists():
            return program
    raise ConfigError(
        f"expected mq{kind.value} in {own[-1]}, found none: install CometMQ into an environment of its own"
    )


def _steps(wanted: Service, path: Path) -> str:
    directories = " ".join((wanted.data, *wanted.writable))
    return "\n".join(
        [
            "",
            f"would write     {path}",
            f"would make      {directories}, if missing, for user {wanted.user}",
            "would run       systemctl daemon-reload",
            f"needs the user  useradd --system --user-group --home-dir {wanted.data} --shell /usr/sbin/nologin "
            f"{wanted.user}",
        ]
    )
