"""``mqshutdown namesrv|broker|controller``: finds this user's servers, asks them to stop, and waits until they have.

Servers are found by their command line in ``/proc``, so it does not matter who started them or from where. A process
is referenced by a descriptor (pidfd) from the moment it is found, so a reused process id is never signalled.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import click

_COMMANDS = {"namesrv": "mqnamesrv", "broker": "mqbroker", "controller": "mqcontroller"}
_NOUNS = {"namesrv": "name server", "broker": "broker", "controller": "controller"}


class Server(NamedTuple):
    pid: int
    pidfd: int
    command: str


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("kind", type=click.Choice(list(_COMMANDS)))
@click.option(
    "--timeout", default=60.0, show_default=True, help="Seconds to wait until they have stopped."
)
@click.option(
    "--list", "is_list", is_flag=True, help="Only list what would be stopped, with process ids."
)
def main(kind: str, timeout: float, is_list: bool) -> None:
    """Stop all name servers, all brokers or all controllers that this user runs on this machine.

    Each is asked to stop (SIGTERM) and ends properly. To stop only one of them, use --list and kill -TERM.

    \b
    Exit code: 0 all have stopped; 1 none was running, or some still run; 2 a wrong option.

    \b
    Examples:
      mqshutdown broker --list
      mqshutdown broker
    """
    servers = list(find(kind))
    if not servers:
        raise click.ClickException(f"no {_NOUNS[kind]} of this user is running on this machine")
    if is_list:
        for server in servers:
            click.echo(f"{_NOUNS[kind]} {server.pid}: {server.command}")
            os.close(server.pidfd)
        return
    for server in servers:
        try:
            signal.pidfd_send_signal(server.pidfd, signal.SIGTERM)
        except ProcessLookupError:
            pass  # It has exited meanwhile, which the wait below will notice.
        click.echo(f"asked {_NOUNS[kind]} {server.pid} to stop: {server.command}")
    deadline = time.monotonic() + timeout
    stuck = [server for server in servers if not _has_ended(server, deadline)]
    for server in servers:
        if server not in stuck:
            click.echo(f"{_NOUNS[kind]} {server.pid} has stopped")
    if stuck:
        numbers = " ".join(str(server.pid) for server in stuck)
        raise click.ClickException(
            f"still running after {timeout:g} s: {numbers}. Look into the log; kill -9 is safe for the"
            " data of acknowledged messages, but the next start takes longer"
        )


def find(kind: str, proc: Path = Path("/proc")) -> Iterator[Server]:
    """This user's running servers of a kind; the caller owns their descriptors."""
    for entry in proc.iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            pidfd = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            # Read after the descriptor is open, so that it belongs to the process that will be signalled.
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
            is_own = entry.stat().st_uid == os.getuid()
        except OSError:
            words, is_own = [], False
        if is_own and is_server(words, kind):
            yield Server(int(entry.name), pidfd, " ".join(words))
        else:
            os.close(pidfd)


def is_server(words: Sequence[str], kind: str) -> bool:
    """Whether a command line is that of such a server, run as a command or with a Python interpreter.

    ``grep mqnamesrv`` or an editor with the file open is not one.
    """
    if not words:
        return False
    if PurePath(words[0]).name == _COMMANDS[kind]:
        return True
    if not PurePath(words[0]).name.startswith("python"):
        return False
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        if rest[0] == "-c":
            return False
        # The value of these two is the next word.
        del rest[: 2 if rest[0] in ("-X", "-W") else 1]
    if rest[:1] == ["-m"]:
        return rest[1:2] in ([f"cometmq.{kind}"], [f"cometmq.{kind}.__main__"])
    script = PurePath(rest[0]) if rest else PurePath()
    return script.name == _COMMANDS[kind] or script.parts[-3:] == ("cometmq", kind, "__main__.py")


def _has_ended(server: Server, deadline: float) -> bool:
    """Wait for the exit; a pidfd then becomes readable, whether or not a parent has reaped the process."""
    poll = select.poll()
    poll.register(server.pidfd, select.POLLIN)
    has_ended = bool(poll.poll(max(deadline - time.monotonic(), 0) * 1000))
    os.close(server.pidfd)
    return has_ended


if __name__ == "__main__":
    main()
