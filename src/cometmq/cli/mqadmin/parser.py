"""Options as Apache Commons CLI reads them, which RocketMQ's tool does. No I/O.

``-b ADDR``, ``-bADDR``, ``-b=ADDR``, ``--brokerAddr ADDR``, ``--brokerAddr=ADDR``, ``-brokerAddr ADDR``, an unambiguous
beginning of a long name, and flags put together (``-mh``). A value may begin with a minus if it is no option. The first
of several values counts. Unlike Commons CLI, a word that belongs to no option is an error: it ignores it, and with it
half of a topic that was meant to be one word, or of a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.command import Command, Option
from cometmq.cli.mqadmin.options import EVERYWHERE, OWN


def parse(command: Command, words: Sequence[str]) -> dict[str, str]:
    """Key of each option that is given to its value, empty for a flag.

    Raises:
        UsageError: for words that the command does not take; not for what is missing, see ``check_complete``.
    """
    reader = _Reader(command)
    for word in words:
        reader.take(word)
    reader.end()
    return reader.found


def check_complete(command: Command, found: dict[str, str]) -> None:
    """Raises UsageError if a required option is missing, or two are given that exclude each other."""
    for group in command.groups:
        given = [key for key in group if key in found]
        if len(given) > 1:
            raise UsageError(
                f"The option '{given[1]}' was specified but an option from this group has already been selected: "
                f"'{given[0]}'"
            )
    missing = [option.key for option in command.options if option.is_required]
    missing = [key for key in missing if key not in found]
    for group in command.groups:
        if not any(key in found for key in group):
            names = [f"-{key} ({command.option(key).help})" for key in group]
            missing.append(f"one of [{', '.join(names)}]")
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise UsageError(f"Missing required option{plural}: {', '.join(missing)}")


class _Reader:
    def __init__(self, command: Command) -> None:
        self.found: dict[str, str] = {}
        options = (*command.options, *EVERYWHERE)
        self._by_letter = {option.letter: option for option in options if option.letter}
        self._by_name = {option.name: option for option in options}
        self._own = {option.name: option for option in OWN}
        self._waiting: Option | None = None

    def take(self, word: str) -> None:
        if self._waiting is not None and not self._is_option(word):
            self._set(self._waiting, _unquoted(word))
            self._waiting = None
        elif word.startswith("--"):
            self._long(word)
        elif word.startswith("-") and word != "-":
            self._short(word)
        else:
            raise UsageError(
                f"expected an option, got the word {word!r}; quote a value with blanks in it"
            )

    def end(self) -> None:
        if self._waiting is not None:
            raise UsageError(f"Missing argument for option: {self._waiting.key}")

    def _is_option(self, word: str) -> bool:
        if not word.startswith("-") or word == "-" or re.fullmatch(r"-\d+(\.\d*)?", word):
            return False
        name = word.lstrip("-").partition("=")[0]
        if not name:
            return False
        if word.startswith("--"):
            return bool(self._named(name))
        return name in self._by_letter or name[0] in self._by_letter or bool(self._named(name))

    def _named(self, name: str) -> list[Option]:
        """Options whose long name this is, or begins. Our own have to be spelled out."""
        exact = self._by_name.get(name) or self._own.get(name)
        if exact is not None:
            return [exact]
        return [option for long, option in self._by_name.items() if long.startswith(name)]

    def _long(self, word: str) -> None:
        name, equals, text = word.lstrip("-").partition("=")
        matching = self._named(name) if name else []
        if not matching:
            raise UsageError(f"Unrecognized option: {word}")
        if len(matching) > 1:
            names = ", ".join(f"--{option.name}" for option in matching)
            raise UsageError(f"Ambiguous option: '{word}' (could be: {names})")
        [option] = matching
        if not equals:
            self._begin(option)
        elif option.takes_value:
            self._begin(option)
            self._value(text)
        else:
            raise UsageError(f"expected no value for the option --{option.name}, got {text!r}")

    def _short(self, word: str) -> None:
        name, equals, text = word.lstrip("-").partition("=")
        if name in self._by_letter and not equals:
            self._begin(self._by_letter[name])
        elif name in self._by_letter and self._by_letter[name].takes_value:
            self._begin(self._by_letter[name])
            self._value(text)
        elif len(name) > 1 and self._named(name):
            self._long(word)
        else:
            self._together(word)

    def _together(self, word: str) -> None:
        """``-mh``: flags by their letters, or ``-tOrders``: a letter and its value."""
        for index, letter in enumerate(word[1:], start=1):
            option = self._by_letter.get(letter)
            if option is None:
                raise UsageError(f"Unrecognized option: {word}")
            self._begin(option)
            if self._waiting is not None and word[index + 1 :]:
                self._value(_unquoted(word[index + 1 :]))
                return

    def _begin(self, option: Option) -> None:
        self.end()
        if option.takes_value:
            self._waiting = option
        else:
            self._set(option, "")

    def _value(self, text: str) -> None:
        assert self._waiting is not None
        self._set(self._waiting, text)
        self._waiting = None

    def _set(self, option: Option, text: str) -> None:
        self.found.setdefault(option.key, text)


def _unquoted(text: str) -> str:
    """Quotes around a whole value are no part of it: cron and Windows pass them on."""
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        return text[1:-1]
    return text
