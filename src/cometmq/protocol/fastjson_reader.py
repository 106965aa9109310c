"""The tolerant reader behind ``fastjson``: everything fastjson accepts that strict JSON does not.

Integer, bare and object keys, single quotes, superfluous commas, control characters inside strings, ``$ref``. Pure
Python, hence bounded in values and depth. Every character is scanned once: a pattern is only tried where the previous
one ended, and none backtracks.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.message_queue import MessageQueue

DEPTH_MAX: Final = 128
VALUES_MAX: Final = 200_000
"""They take about two microseconds each. Two thirds of a table by queue are its keys."""

ESCAPES_MAX: Final = 500_000
"""Maximum number of characters written with a backslash: a third of a microsecond each."""

FOLLOWED_MAX: Final = 64
"""Maximum length of a chain of references."""

COPIED_NODES_MAX: Final = 100_000
"""Maximum number of nodes that references may add: a few hundred bytes of nested ones can expand to billions."""

_VALUE_BYTES_MIN: Final = 2
_NOT_BEFORE_VALUES: Final = bytes(byte for byte in range(256) if byte not in b",[{")
_INTEGER_DIGITS_MAX: Final = 40
_BLANK = re.compile(r"[ \t\r\n\f\b]*+")
_COMMAS = re.compile(r"[ \t\r\n\f\b]*+(?:,[ \t\r\n\f\b]*+)*+")
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"|\'((?:[^\'\\]++|\\.)*+)\'', re.DOTALL)
# No possessive group here: before Python 3.11.5, one that fails half-way, as in "0E", keeps what it has consumed.
_NUMBER = re.compile(r"-?\d++(\.\d++)?([eE][+-]?\d++)?")
_WORD = re.compile(r"[A-Za-z_$][\w$.\-]*+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[(\d+)\]|\[(?:\"([^\"]*)\"|'([^']*)')\]")

_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_WORDS = {"true": True, "false": False, "null": None}


def read(data: bytes, *, queue_keys: bool = False, values_max: int = VALUES_MAX) -> Any:
    """The value of a text.

    Args:
        queue_keys: return keys that are message queues as ``MessageQueue``, not as text.
        values_max: refuse a text that may hold more values.

    Raises:
        RemoteProtocolError: says what was expected, and at which character.
    """
    check_values(data, values_max)
    if data.count(b"\\") > ESCAPES_MAX:
        raise RemoteProtocolError(
            f"JSON that is not strict and holds more than {ESCAPES_MAX} backslashes"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"JSON is not UTF-8: {error}") from None
    value, at = _Reader(text, queue_keys).value(_skip(text, 0), 0)
    if _skip(text, at) != len(text):
        raise RemoteProtocolError(f"expected the end of the JSON text at character {at}")
    return resolve(value) if "$ref" in text else value


def check_values(data: bytes, values_max: int) -> None:
    """Raise RemoteProtocolError if a text may hold more values, counted by the characters that precede them."""
    # Most texts are too small for that many, and need no counting.
    if len(data) // _VALUE_BYTES_MIN > values_max:
        count = 1 + len(data.translate(None, _NOT_BEFORE_VALUES))
        if count > values_max:
            raise RemoteProtocolError(
                f"JSON of up to {count} values, where at most {values_max} are taken"
            )


def resolve(root: Any) -> Any:
    """A copy of ``root`` with every ``{"$ref":path}`` replaced by its target, or by None if there is none."""
    try:
        return _Resolver(root).copy(root, (), ())
    except RecursionError:
        raise RemoteProtocolError("JSON references are nested too deeply") from None


class _Reader:
    """Recursive descent; each method takes a position and returns the value and the position after it."""

    def __init__(self, text: str, queue_keys: bool) -> None:
        self._text = text
        self._queue_keys = queue_keys
        self._is_in_key = False

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        text = self._text
        first = text[at : at + 1]
        if first == "{":
            return self._object(at + 1, depth + 1)
        if first == "[":
            return self._array(at + 1, depth + 1)
        if first in ('"', "'") and first:
            return self._string(at)
        if match := _NUMBER.match(text, at):
            return _number(match), match.end()
        match = _WORD.match(text, at)
        if match and match[0] in _WORDS:
            return _WORDS[match[0]], match.end()
        raise _expected("a value", at)

    def _object(self, at: int, depth: int) -> tuple[dict[Any, Any], int]:
        _check_depth(depth)
        text = self._text
        pairs: dict[Any, Any] = {}
        while True:
            at = _skip_commas(text, at)
            if text.startswith("}", at):
                return pairs, at + 1
            key, at = self._key(at, depth)
            at = _skip(text, at)
            if not text.startswith(":", at):
                raise _expected("':'", at)
            pairs[key], at = self.value(_skip(text, at + 1), depth)
            after = _skip(text, at)
            if text[after : after + 1] not in (",", "}"):
                raise _expected("',' or '}'", after)

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        _check_depth(depth)
        text = self._text
        items: list[Any] = []
        while True:
            at = _skip_commas(text, at)
            if text.startswith("]", at):
                return items, at + 1
            item, at = self.value(at, depth)
            items.append(item)
            after = _skip(text, at)
            if text[after : after + 1] not in (",", "]"):
                raise _expected("',' or ']'", after)

    def _key(self, at: int, depth: int) -> tuple[Any, int]:
        text = self._text
        first = text[at : at + 1]
        if first == "{":
            if self._is_in_key:
                # Its text would be quoted once per level, with twice as many backslashes each time.
                raise _expected("a key that is no object, inside of one that is", at)
            self._is_in_key = True
            pairs, at = self._object(at + 1, depth + 1)
            self._is_in_key = False
            return self._object_key(pairs), at
        if first in ('"', "'") and first:
            key, at = self._string(at)
            if self._queue_keys and key.startswith("{"):
                return _quoted_queue(key), at
            return key, at
        match = _NUMBER.match(text, at) or _WORD.match(text, at)
        if match is None:
            raise _expected("a key", at)
        return match[0], match.end()

    def _object_key(self, pairs: dict[Any, Any]) -> Any:
        if self._queue_keys and (queue := _queue(pairs)) is not None:
            return queue
        return msgspec.json.encode(pairs).decode()

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self._text, at)
        if match is None:
            raise _expected("the end of a string", len(self._text))
        content = match[1] if match[1] is not None else match[2]
        return _unescape(content, at) if "\\" in content else content, match.end()


class _Resolver:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._nodes_left = COPIED_NODES_MAX
        self._steps: dict[str, tuple[Any, ...]] = {}

    def copy(self, node: Any, path: tuple[Any, ...], followed: tuple[tuple[Any, ...], ...]) -> Any:
        """``path`` leads from the root to ``node``; ``followed`` are the paths of the references being followed."""
        if followed:
            self._spend(1)
        if isinstance(node, dict):
            if len(node) == 1 and isinstance(reference := node.get("$ref"), str):
                return self._follow(reference, path, followed)
            _check_depth(len(path))
            return {key: self.copy(item, (*path, key), followed) for key, item in node.items()}
        if isinstance(node, list):
            _check_depth(len(path))
            return [self.copy(item, (*path, at), followed) for at, item in enumerate(node)]
        return node

    def _follow(
        self, reference: str, path: tuple[Any, ...], followed: tuple[tuple[Any, ...], ...]
    ) -> Any:
        if reference == "..":
            steps = path[:-1]
        elif reference.startswith("$"):
            if reference not in self._steps:
                self._steps[reference] = _steps(reference)
            steps = self._steps[reference]
        else:
            return None
        # An object inside itself has no finite copy; Java code never reads that deeply either.
        if steps in followed or steps == path[: len(steps)]:
            return None
        if len(followed) == FOLLOWED_MAX:
            raise RemoteProtocolError(
                f"JSON references lead to one another over more than {FOLLOWED_MAX} steps"
            )
        self._spend(len(steps))
        target = self._root
        for step in steps:
            try:
                target = target[step]
            except (KeyError, IndexError, TypeError):
                return None
        return self.copy(target, steps, (*followed, steps))

    def _spend(self, nodes: int) -> None:
        self._nodes_left -= nodes
        if self._nodes_left < 0:
            raise RemoteProtocolError("JSON references stand for too many values")


def _steps(reference: str) -> tuple[Any, ...]:
    steps: list[Any] = []
    for match in _STEP.finditer(reference, 1):
        name, index, quoted, single = match.groups()
        if index is not None:
            steps.append(int(index) if len(index) < 10 else -1)
        elif name is not None:
            steps.append(re.sub(r"\\(.)", r"\1", name))
        else:
            steps.append(quoted if quoted is not None else single)
    return tuple(steps)


def _queue(pairs: Any) -> MessageQueue | None:
    try:
        return msgspec.convert(pairs, MessageQueue, strict=False)
    except msgspec.ValidationError:
        return None


def _quoted_queue(key: str) -> MessageQueue | str:
    try:
        return _queue(_Reader(key, queue_keys=False).value(0, 0)[0]) or key
    except RemoteProtocolError:
        return key


def _number(match: re.Match[str]) -> int | float:
    fraction, exponent = match.groups()
    if fraction is not None or exponent is not None:
        number = float(match[0])
        if not math.isinf(number):
            return number
    elif len(match[0]) <= _INTEGER_DIGITS_MAX:
        return int(match[0])
    raise _expected("a number of sane size", match.start())


def _unescape(content: str, at: int) -> str:
    plain = _ESCAPE.sub(_unescaped, content)
    try:
        # Joins surrogate pairs; a lone surrogate is not valid in any encoding.
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _expected("whole characters", at) from None


def _unescaped(match: re.Match[str]) -> str:
    four, two, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    return chr(int(four or two, 16))


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _skip_commas(text: str, at: int) -> int:
    match = _COMMAS.match(text, at)
    assert match is not None
    return match.end()


def _check_depth(depth: int) -> None:
    if depth > DEPTH_MAX:
        raise RemoteProtocolError(f"JSON is nested deeper than {DEPTH_MAX} levels")


def _expected(what: str, at: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"expected {what} at character {at} of the JSON text")
