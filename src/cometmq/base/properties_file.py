"""Reads and writes Java's properties format: the one codec for configuration files and for settings on the wire.

A line ends at ``\\n``, ``\\r`` or ``\\r\\n`` and at nothing else. The output is ASCII: any other character becomes a
``\\u`` escape, so no reader can take a value for the end of a line, and Java, which expects Latin-1, can read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from cometmq.base.errors import ConfigError

BODY_BYTES_MAX: Final = 64 * 1024
"""Maximum size of the settings in one request; a few hundred lines are a few kilobytes."""

VALUE_CHARS_MAX: Final = 1024
"""Maximum length of one value in a request. Accepted settings are kept, so this bounds their total as well."""

_LINE_END: Final = re.compile(r"(\r\n|\r|\n)")
_BLANKS: Final = " \t\f"
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAMED: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Parse ``key=value``, ``key:value`` and ``key value`` lines; ``#`` and ``!`` start comments, ``\\`` continues a
    line.

    Raises:
        ConfigError: an invalid ``\\u`` escape.
    """
    return dict(_key_and_value(line) for _, line in _entries(text) if line is not None)


def parse_properties_body(body: bytes | bytearray | memoryview) -> dict[str, str]:
    """The settings in the body of a request. Raises ConfigError, without parsing if the body is too large."""
    if len(body) > BODY_BYTES_MAX:
        raise ConfigError(f"settings of {len(body)} bytes; at most {BODY_BYTES_MAX} are taken")
    try:
        text = bytes(body).decode()
    except UnicodeDecodeError:
        raise ConfigError("settings must be UTF-8 text") from None
    values = parse_properties(text)
    for key, value in values.items():
        if len(value) > VALUE_CHARS_MAX:
            raise ConfigError(
                f"{key[:100]} has {len(value)} characters; at most {VALUE_CHARS_MAX} are taken over the network"
            )
    return values


def decode_file(data: bytes) -> str:
    """The text of a file. Bytes that are not UTF-8, as in old comments, are restored by ``encode_file``."""
    return data.decode("utf-8", "surrogateescape")


def encode_file(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def render_properties(values: Mapping[str, str]) -> str:
    """One ``key=value`` line per setting. Raises ConfigError for half of a surrogate pair."""
    return "".join(f"{_key_text(key)}={_value_text(value)}\n" for key, value in values.items())


def edit_properties(text: str, changes: Mapping[str, str]) -> str:
    """``text`` with each key of ``changes`` set: in place if it is there already, otherwise at the end.

    Comments, order and all other lines stay as they are. Of a key that occurs twice, only the first occurrence is
    kept.
    """
    left = dict(changes)
    out: list[str] = []
    for raw, line in _entries(text):
        key = None if line is None else _key_and_value(line)[0]
        if key is None or key not in changes:
            out.append(raw)
        elif key in left:
            out.append(render_properties({key: left.pop(key)}))
    if left:
        out += (_closing(out[-1]), render_properties(left))
    return "".join(out)


def _entries(text: str) -> Iterator[tuple[str, str | None]]:
    """Lines with their continuations: the raw characters, and their content; None for comments and blank lines.

    The last entry has no line end, and may be empty.
    """
    raw: list[str] = []
    said: list[str] = []
    pieces = _LINE_END.split(text)
    for position in range(0, len(pieces), 2):
        raw += pieces[position : position + 2]
        line = pieces[position].lstrip(_BLANKS)
        is_comment = not said and line[:1] in ("#", "!")
        if _is_continued(line) and not is_comment:
            if len(line) > 1:  # a line with only a backslash has no effect, so a comment may follow
                said.append(line[:-1])
            continue
        yield "".join(raw), None if is_comment else "".join((*said, line)) or None
        raw, said = [], []
    if raw:
        yield "".join(raw), "".join(said) or None


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _closing(entry: str) -> str:
    """What must follow an entry so that the next line is separate; a blank line ends a continuation."""
    content = entry.rstrip("\r\n")
    line_end = "" if entry == "" or entry[-1] in "\r\n" else "\n"
    return line_end + "\n" if _is_continued(content) else line_end


def _key_and_value(line: str) -> tuple[str, str]:
    """The key ends at the first unescaped ``=``, ``:`` or blank."""
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescaped(key), _unescaped(rest)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter != "\\" or position == len(text):
            out.append(letter)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            digits = _HEX.match(text, position)
            if digits is None:
                raise ConfigError(
                    f"bad escape {text[position - 2 : position + 4]!r}: \\u takes four hexadecimal digits"
                )
            out.append(chr(int(digits.group(), 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return _joined("".join(out))


def _joined(text: str) -> str:
    """Two halves of a surrogate pair, as ``\\ud83d\\ude00`` gives them, become their character."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ConfigError("bad escape: half of a surrogate pair is no character") from None


def _key_text(key: str) -> str:
    return re.sub(r"[ =:#!]", r"\\\g<0>", _escaped(key))


def _value_text(value: str) -> str:
    text = _escaped(value)
    return "\\" + text if text[:1] == " " else text


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_NAMED.get(letter) or _ascii(letter) for letter in text)


def _ascii(letter: str) -> str:
    if " " <= letter <= "~":
        return letter
    try:
        units = letter.encode("utf-16-be")
    except UnicodeEncodeError:
        raise ConfigError(f"{letter!r} is half of a surrogate pair and no character") from None
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
