"""The texts of ``mqadmin`` and ``mqadmin help NAME``, in the form of RocketMQ's tool. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cometmq.cli.mqadmin.command import Command, Option
from cometmq.cli.mqadmin.options import EVERYWHERE, OWN

WIDTH: Final = 110
_LEFT: Final = 1
_GAP: Final = 3


def command_list(commands: Iterable[Command]) -> str:
    lines = ["The most commonly used mqadmin commands are:"]
    lines += [f"   {command.name:<35} {command.summary}" for command in commands]
    lines += ["", "See 'mqadmin help <command>' for more information on a specific command."]
    return "\n".join(lines)


def usage(command: Command) -> str:
    """RocketMQ's part: the options that its tool has."""
    options = sorted((*command.options, *EVERYWHERE), key=lambda option: option.key.lower())
    first = f"usage: mqadmin {command.name} {_synopsis(command, options)}".rstrip()
    return "\n".join([*_wrapped(first, len("usage: ")), *_option_lines(options)])


def full_help(command: Command) -> str:
    """``usage``, what the command does, our own options, and examples."""
    own = [option for option in OWN if option.name != "watch" or command.can_watch]
    if command.confirm is None:
        own = [option for option in own if option.name != "yes"]
    parts = [usage(command), "", *_wrapped(command.summary, 0), "", "Not in RocketMQ's tool:"]
    parts += _option_lines(own)
    if command.examples:
        parts += ["", "Examples:", *(f"  mqadmin {line}" for line in command.examples)]
    return "\n".join(parts)


def _synopsis(command: Command, options: Sequence[Option]) -> str:
    """All options; those of which exactly one must be given stand together, with a gap for each, as in RocketMQ's."""
    group_of = {key: group for group in command.groups for key in group}
    shown: set[tuple[str, ...]] = set()
    words = []
    for option in options:
        group = group_of.get(option.key)
        if group is None:
            text = _call(option)
            words.append(text if option.is_required else f"[{text}]")
        elif group not in shown:
            shown.add(group)
            words.append(" | ".join(_call(command.option(key)) for key in sorted(group)))
        else:
            words.append("")
    return " ".join(words)


def _call(option: Option) -> str:
    name = f"-{option.letter}" if option.letter else f"--{option.name}"
    return f"{name} <arg>" if option.takes_value else name


def _option_lines(options: Sequence[Option]) -> list[str]:
    left = []
    for option in options:
        name = f"-{option.letter},--{option.name}" if option.letter else f"   --{option.name}"
        left.append(" " * _LEFT + (f"{name} <arg>" if option.takes_value else name))
    column = max(map(len, left)) + _GAP
    lines = []
    for head, option in zip(left, options, strict=True):
        lines += _wrapped(f"{head:<{column}}{option.help}", column)
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    """Lines of at most ``WIDTH`` characters, all but the first indented."""
    lines = []
    while len(text) > WIDTH:
        cut = text.rfind(" ", 0, WIDTH + 1)
        if cut <= indent:
            cut = WIDTH
        lines.append(text[:cut].rstrip())
        text = " " * indent + text[cut:].strip()
    return [*lines, text.rstrip()]
