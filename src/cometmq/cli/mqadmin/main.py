"""The ``mqadmin`` command: from words to a subcommand, and from what became of it to an exit code."""

from __future__ import annotations

import asyncio
import difflib
import io
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import IO, Final

from cometmq.base.errors import CometError, UsageError
from cometmq.cli.client_command import FAILED, MISTAKE, exit_codes
from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.call import Call, config_of
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.completion import COMPLETION, COMPLETION_HELP, script
from cometmq.cli.mqadmin.confirm import confirm
from cometmq.cli.mqadmin.output import Output
from cometmq.cli.mqadmin.parser import check_complete, parse
from cometmq.cli.mqadmin.refused import REFUSED
from cometmq.cli.mqadmin.registry import COMMANDS, find
from cometmq.cli.mqadmin.usage import command_list, full_help

EXIT_CODES_OPTION: Final = "--rocketmq-exit-codes"
ROCKETMQ_MISTAKE: Final = 1
"""RocketMQ's tool ends with 1 for wrong options, and with 0 for everything else, failures included."""

_CLEAR: Final = "\x1b[H\x1b[2J"


def main(words: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code: 0 done, 1 failed, 2 called in a wrong way."""
    given = list(sys.argv[1:] if words is None else words)
    code = run(given)
    if EXIT_CODES_OPTION in given and code in (FAILED, MISTAKE):
        code = _rocketmq_code([word for word in given if word != EXIT_CODES_OPTION])
    raise SystemExit(code)


def _rocketmq_code(words: Sequence[str]) -> int:
    """How RocketMQ's tool ends where ours fails: by whether it can read the options, whatever happens then."""
    command = find(words[0])
    if command is None:
        return 0
    try:
        check_complete(command, parse(command, words[1:]))
    except UsageError:
        return ROCKETMQ_MISTAKE
    return 0


def run(words: Sequence[str]) -> int:
    """The exit code, by our rules."""
    words = [word for word in words if word != EXIT_CODES_OPTION]
    if not words or words[0] in ("-h", "--help"):
        print(command_list(COMMANDS))
        return 0
    name, *rest = words
    if name == "--version":
        from cometmq.base.server_command import VERSION

        print(f"mqadmin, version {VERSION}")
        return 0
    if name == "help":
        return _help(rest)
    if name == COMPLETION:
        return _completion(rest)
    command = find(name)
    if command is None:
        return _unknown(name)
    try:
        with exit_codes(f"mqadmin {name}"):
            return _call(command, rest)
    except SystemExit as end:
        return int(end.code or 0)


def _help(words: Sequence[str]) -> int:
    if not words:
        print(command_list(COMMANDS))
        return 0
    if words[0] == COMPLETION:
        print(COMPLETION_HELP)
        return 0
    command = find(words[0])
    if command is None:
        return _unknown(words[0])
    print(full_help(command))
    return 0


def _unknown(name: str) -> int:
    if name in REFUSED:
        print(f"mqadmin {name}: {REFUSED[name]}", file=sys.stderr)
        return FAILED
    print(f"The sub command {name} not exist.")
    if name.startswith("-"):
        print(
            "mqadmin: the command comes first, like `mqadmin topicList -n ADDRESS`", file=sys.stderr
        )
    near = difflib.get_close_matches(name, [command.name for command in COMMANDS], 1)
    if near:
        print(f"mqadmin: did you mean {near[0]}?", file=sys.stderr)
    return MISTAKE


def _completion(words: Sequence[str]) -> int:
    try:
        print(script(words[0] if words else "", COMMANDS))
    except UsageError as error:
        print(f"mqadmin {COMPLETION}: {error}", file=sys.stderr)
        return MISTAKE
    return 0


def _call(command: Command, words: Sequence[str]) -> int:
    try:
        found = parse(command, words)
        if "h" in found:
            print(full_help(command))
            return 0
        check_complete(command, found)
        args = Arguments(found)
        seconds = _interval(command, args)
    except UsageError as error:
        print(
            f"mqadmin {command.name}: {error}; see `mqadmin help {command.name}`", file=sys.stderr
        )
        return MISTAKE
    if command.confirm is not None:
        what = command.confirm(args)
        if what:
            confirm(what, is_said="yes" in args, keyboard=sys.stdin, screen=sys.stderr)
    try:
        return asyncio.run(_carry_out(command, args, seconds))
    except KeyboardInterrupt:
        if seconds is None:
            raise
        return 0


def _interval(command: Command, args: Arguments) -> float | None:
    """Seconds between two repetitions; None: once."""
    text = args.text("watch")
    if text is not None and not command.can_watch:
        raise UsageError("--watch is for commands that show progress or status")
    if text is None and command.interval:
        text = args.text(command.interval)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise UsageError(f"expected seconds from 0.1 to 86400 between two looks, got {text!r}")
    return seconds


async def _carry_out(command: Command, args: Arguments, seconds: float | None) -> int:
    from cometmq.admin import Admin

    is_terminal = sys.stdout.isatty()
    has_colour = _has_colour(args, is_terminal)
    controllers = args.text("a", "") if command.asks_controllers else ""
    async with Admin(config=config_of(args), controllers=controllers) as admin:

        async def look(screen: IO[str]) -> int:
            out = Output(
                screen,
                sys.stderr,
                is_json="json" in args,
                width=shutil.get_terminal_size().columns if is_terminal else 0,
                has_colour=has_colour,
            )
            await command.run(Call(args, admin, out))
            return FAILED if out.has_failed else 0

        if seconds is None:
            return await look(sys.stdout)
        await _watch(look, seconds, clear=_CLEAR if is_terminal else "")
    return 0


async def _watch(look: Callable[[IO[str]], Awaitable[int]], seconds: float, *, clear: str) -> None:
    """Looks again and again. If the first look works, later ones may fail: what is watched may come back."""
    is_first = True
    while True:
        # An answer appears as a whole, not line by line.
        screen = io.StringIO()
        try:
            await look(screen)
        except CometError as error:
            if is_first:
                raise
            screen.write(f"{error}\n")
        sys.stdout.write(clear + screen.getvalue())
        sys.stdout.flush()
        is_first = False
        await _pause(seconds)


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


def _has_colour(args: Arguments, is_terminal: bool) -> bool:
    choice = args.text("color", "auto")
    if choice not in ("auto", "always", "never"):
        raise UsageError(f"expected auto, always or never for --color, got {choice!r}")
    if choice == "auto":
        return is_terminal and not os.environ.get("NO_COLOR")
    return choice == "always"
