"""Asks before something is done that cannot be undone."""

from __future__ import annotations

from typing import IO

from cometmq.base.errors import UsageError


class NotConfirmed(UsageError):
    """Nobody said yes; nothing was done."""


def confirm(what: str, *, is_said: bool, keyboard: IO[str], screen: IO[str]) -> None:
    """Goes on if the operator agrees to ``what``, such as "delete topic Orders", or has agreed with ``--yes``.

    Raises:
        NotConfirmed: he does not, or there is nobody to ask.
    """
    if is_said:
        return
    if not keyboard.isatty():
        raise NotConfirmed(
            f"this would {what}; nothing was done, because nobody can be asked here: add --yes if it is meant"
        )
    screen.write(f"This will {what}.\nGo on? [y/N] ")
    screen.flush()
    if keyboard.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed("nothing was done")
