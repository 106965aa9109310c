"""What a subcommand is: names, options and texts as data, and the function that carries it out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cometmq.cli.mqadmin.arguments import Arguments
    from cometmq.cli.mqadmin.call import Call


@dataclass(frozen=True, slots=True)
class Option:
    """``-b ADDR`` or ``--brokerAddr ADDR``. Some of RocketMQ's have two letters, such as ``-bn``; a few have none."""

    letter: str
    name: str
    help: str
    takes_value: bool = True
    is_required: bool = False

    @property
    def key(self) -> str:
        """How the program and error messages call it."""
        return self.letter or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """
    Args:
        groups: keys of options of which exactly one must be given, such as ``("b", "c")``.
        confirm: for what cannot be undone: says what will happen, with the names of the things it happens to;
            an empty text if, with these options, nothing does.
        interval: the key of RocketMQ's option for endless repetition, if it has one; it means the same as ``--watch``.
        can_watch: whether ``--watch`` makes sense.
        asks_controllers: whether ``-a`` gives the addresses of controllers.
        examples: words after ``mqadmin``, for ``--help``.
    """

    name: str
    summary: str
    run: Callable[[Call], Awaitable[None]]
    options: tuple[Option, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    confirm: Callable[[Arguments], str] | None = None
    interval: str = ""
    can_watch: bool = False
    asks_controllers: bool = False
    examples: tuple[str, ...] = ()

    def option(self, key: str) -> Option:
        return next(option for option in self.options if option.key == key)
