"""Where a subcommand puts what it found: text for people, or one JSON document for programs."""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import IO, TYPE_CHECKING, Any

import msgspec

from cometmq.base.errors import CallTimedOut, CometError
from cometmq.cli.mqadmin.layout import Layout, fitted

if TYPE_CHECKING:
    from cometmq.admin import ByServer


class Output:
    """Subcommands call ``line``, ``text`` and ``table`` for people, and ``value`` for programs; one of them is shown.

    Args:
        stream: where it goes.
        errors: where failures go.
        is_json: whether programs read it.
        width: characters of the terminal; 0 if there is none, and tables are exactly RocketMQ's.
    """

    def __init__(
        self,
        stream: IO[str],
        errors: IO[str],
        *,
        is_json: bool = False,
        width: int = 0,
        has_colour: bool = False,
    ) -> None:
        self._stream = stream
        self._errors = errors
        self._width = width
        self._has_colour = has_colour
        self.is_json = is_json
        self.has_failed = False

    def line(self, text: str = "") -> None:
        self.text(text + "\n")

    def text(self, text: str) -> None:
        """Exactly this, without an end of line."""
        if not self.is_json:
            self._stream.write(self._printable(text))

    def table(
        self, layout: Layout, rows: Iterable[Sequence[str]], *, has_head: bool = True
    ) -> None:
        if self._width:
            safe = [[_safe(cell) for cell in row] for row in rows]
            lines = fitted(layout, safe, self._width, has_colour=self._has_colour)
            for line in lines if has_head else lines[1:]:
                self._stream.write(line + "\n")
            return
        if has_head:
            self.line(layout.head_line())
        for row in rows:
            self.line(layout.line(row))

    def value(self, value: object) -> None:
        """The JSON document. A subcommand that calls this more than once prints one document a line."""
        if self.is_json:
            self._stream.write(msgspec.json.encode(plain(value)).decode() + "\n")

    def document(self, value: object) -> None:
        """JSON for people, too: indented."""
        if self.is_json:
            self.value(value)
        else:
            encoded = msgspec.json.encode(plain(value))
            self.line(msgspec.json.format(encoded, indent=2).decode())

    def done(self, answers: ByServer[Any], line: str = "", **facts: object) -> None:
        """What servers were told to do: a line for each that did it, and those that failed.

        Args:
            line: with {address} in it.
            facts: of the JSON document, besides the addresses.
        """
        for address in answers.done if line else ():
            self.line(line.replace("{address}", address))
        self.failures(answers.failed, of_change=True)
        self.value({"done": list(answers.done), **facts})

    def failures(self, failed: Mapping[str, CometError], *, of_change: bool = False) -> None:
        """Servers that did not do their part: the command has failed. Who is late with a change may yet make it."""
        for server, error in failed.items():
            text = str(error)
            if of_change and isinstance(error, CallTimedOut) and error.sent:
                text += "; it may do it later, or have done it: look before you repeat it"
            self.failure(text if server in text else f"{server}: {text}")

    def warning(self, text: str) -> None:
        """What was done may not be what was meant."""
        self._errors.write(f"mqadmin: {_safe(text)}\n")

    def failure(self, text: str) -> None:
        self.has_failed = True
        self._errors.write(f"mqadmin: {_safe(text)}\n")

    def _printable(self, text: str) -> str:
        return _safe(text) if self._width else text


def plain(value: Any) -> Any:
    """A value of the library as JSON has it: fields by name, bytes as text if they are, errors as their text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [
            field.name for field in dataclasses.fields(value) if not field.name.startswith("_")
        ]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {_key(key): plain(one) for key, one in value.items()}
    if isinstance(value, Enum):
        return value.name if isinstance(value, int) else plain(value.value)
    if isinstance(value, BaseException):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(one) for one in value]
    return value


def _key(key: object) -> str:
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        return "/".join(str(getattr(key, field.name)) for field in dataclasses.fields(key))
    return str(key)


def _safe(text: str) -> str:
    """Names are chosen by others: nothing in them may drive the terminal."""
    if all(letter.isprintable() or letter in "\n\t" for letter in text):
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1]
        for letter in text
    )
