"""Changing settings inside the text of a ``broker.conf`` while comments and order stay as the operator wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cometmq.base.settings import parse_properties


def with_changes(text: str, changes: Mapping[str, str]) -> str:
    """``text`` with each key of ``changes`` set: in its place where it stands already, at the end otherwise."""
    pending = {key: f"{key}={_escaped(value)}\n" for key, value in changes.items()}
    written: set[str] = set()
    out: list[str] = []
    for entry in _entries(text):
        key = next(iter(parse_properties(entry)), None)
        if key is None or key not in pending:
            out.append(entry)
        elif key not in written:
            # A key that stands twice keeps its first place only; the last one would win when read.
            out.append(pending[key])
            written.add(key)
    if out and not out[-1].endswith("\n"):
        out[-1] += "\n"
    out.extend(line for key, line in pending.items() if key not in written)
    return "".join(out)


def _entries(text: str) -> Iterator[str]:
    """Lines with their continuations, comments and blank lines included, nothing taken away."""
    pending = ""
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        is_comment = not pending and content.lstrip()[:1] in ("#", "!")
        backslashes = len(content) - len(content.rstrip("\\"))
        pending += line
        if is_comment or backslashes % 2 == 0:
            yield pending
            pending = ""
    if pending:
        yield pending


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "\\" + text if text[:1] == " " else text
