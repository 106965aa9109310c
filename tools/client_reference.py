"""Writes docs/reference/client.md and client-settings.md from the client library itself.

python tools/client_reference.py          # write the pages
python tools/client_reference.py --check  # exit 1 when a page is not what it would be written as
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cometmq.client
import cometmq.client.aio
import cometmq.client.sync
from cometmq.base.settings import Row, render, rows
from cometmq.client.aio.queries import Queries

_EMPTY = inspect.Parameter.empty

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

HEAD = """# The client library

Written by `tools/client_reference.py` from signatures and docstrings; do not edit. Settings have
[a page of their own](client-settings.md).

- `cometmq.client.aio`: for asyncio.
- `cometmq.client.sync`: the same names and parameters, blocking; `with` for `async with`, no `await`.
- `cometmq.client`: values, settings and errors that both share.
"""

SETTINGS_HEAD = """# Settings of clients

Written by `tools/client_reference.py` from the software; do not edit. *name* is the keyword in Python, *key* the name
that RocketMQ has for it, or a key of ours where it has none. Values are checked when the object is made: a
`ConfigError` says what was expected.

```text
ProducerConfig(retries=5, client=ClientConfig(name_servers="10.0.0.1:9876;10.0.0.2:9876"))
```
"""

CONFIGS = (
    "ClientConfig",
    "ProducerConfig",
    "PushConsumerConfig",
    "LitePullConfig",
    "PullConsumerConfig",
    "TraceConfig",
    "Credentials",
    "TlsConfig",
)
FIRST = ("Producer", "TransactionProducer", "PushConsumer", "LitePullConsumer", "PullConsumer")
SIGNATURE_CHARACTERS_MAX = 90


def reference() -> str:
    parts = [HEAD]
    parts += ["## Clients\n", *_module(cometmq.client.aio)]
    parts += _class("Queries", Queries)
    parts += ["## Values\n", *_values(cometmq.client)]
    parts += ["## Errors\n", *_errors(cometmq.client)]
    return "\n".join(parts)


def settings() -> str:
    parts = [SETTINGS_HEAD]
    for name in CONFIGS:
        config = getattr(cometmq.client, name)
        parts += [f"## {name}\n", *_settings(config), ""]
    return "\n".join(parts)


# The reference.


def _module(module: ModuleType) -> Iterator[str]:
    others = [name for name in module.__all__ if name not in FIRST]
    for name in (*FIRST, *others):
        item = getattr(module, name)
        if inspect.isclass(item) and issubclass(item, Exception):
            continue
        if inspect.isclass(item):
            yield from _class(name, item, is_made_by_user=name in FIRST or name == "PullSchedule")
        else:
            yield from _function(f"{name}{_signature(item)}", item, "###")


def _values(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        item = getattr(module, name)
        if name in CONFIGS or (inspect.isclass(item) and issubclass(item, Exception)):
            continue
        if inspect.isclass(item):
            yield from _class(name, item)
        else:
            yield from _function(f"{name}{_signature(item)}", item, "###")


def _errors(module: ModuleType) -> Iterator[str]:
    """As a tree, so that a reader sees what an `except` catches."""
    errors = [
        item
        for owner in (module, cometmq.client.aio)
        for name in owner.__all__
        if inspect.isclass(item := getattr(owner, name)) and issubclass(item, Exception)
    ]
    yield "| error | is a | when |"
    yield "| --- | --- | --- |"
    for error in errors:
        parents = ", ".join(
            f"`{base.__name__}`" for base in error.__bases__ if base is not Exception
        )
        yield f"| `{error.__name__}` | {parents} | {_first_line(error)} |"
    yield ""


def _class(name: str, item: type, *, is_made_by_user: bool = False) -> Iterator[str]:
    yield f"### {name}\n"
    if issubclass(item, enum.Enum):
        yield f"{_text(item)}\n"
        yield f"{', '.join(f'`{member.name}`' for member in item)}\n"
        return
    if not is_made_by_user:
        yield f"{_text(item)}\n"
        if fields := _fields(item):
            yield f"Fields: {', '.join(fields)}\n"
    else:
        yield f"```text\n{name}{_signature(item)}\n```\n"
        yield f"{_text(item)}\n"
        if item.__init__.__doc__ and item.__init__.__doc__ != object.__init__.__doc__:
            yield f"{_text(item.__init__)}\n"
        inherited = [base.__name__ for base in item.__bases__ if base is not object]
        if inherited:
            yield f"Besides, everything of {' and '.join(f'[{b}](#{b.lower()})' for b in inherited)}.\n"
    for method_name, method in _public(item):
        if isinstance(method, property):
            assert method.fget is not None
            kind = _kind(inspect.signature(method.fget).return_annotation)
            yield f"**`{method_name}`** `{kind}`: {_text(method)}\n"
            continue
        function = inspect.unwrap(getattr(item, method_name))
        is_async = inspect.iscoroutinefunction(function)
        yield from _function(
            f"{'await ' if is_async else ''}{method_name}{_signature(function)}", function, ""
        )


def _function(heading: str, item: Any, level: str) -> Iterator[str]:
    if level:
        yield f"{level} {heading.partition('(')[0]}\n"
    yield f"```text\n{heading}\n```\n"
    yield f"{_text(item)}\n"


def _public(item: type) -> list[tuple[str, Any]]:
    """Methods and properties of its own that have a docstring, in order of declaration."""
    found: list[tuple[str, Any]] = []
    for name, value in vars(item).items():
        plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        is_shown = inspect.isfunction(plain) or isinstance(plain, property)
        if is_shown and not name.startswith("_") and inspect.getdoc(plain):
            found.append((name, value))
    return found


def _fields(item: type) -> list[str]:
    names = getattr(item, "__struct_fields__", ())
    if not names and dataclasses.is_dataclass(item):
        names = tuple(field.name for field in dataclasses.fields(item))
    if not names:
        names = tuple(name for name in getattr(item, "__slots__", ()) if not name.startswith("_"))
    return [f"`{name}`" for name in names]


def _signature(item: Any) -> str:
    signature = inspect.signature(item)
    parts: list[str] = []
    is_star_written = False
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_star_written:
            parts.append("*")
            is_star_written = True
        kind = f": {_kind(parameter.annotation)}" if parameter.annotation is not _EMPTY else ""
        default = f" = {parameter.default!r}" if parameter.default is not _EMPTY else ""
        parts.append(f"{name}{kind}{default}")
    result = _kind(signature.return_annotation)
    # The constructor of a class gives no None.
    end = "" if inspect.isclass(item) or signature.return_annotation is _EMPTY else f" -> {result}"
    text = f"({', '.join(parts)}){end}"
    if len(text) <= SIGNATURE_CHARACTERS_MAX:
        return text
    lines = ",\n    ".join(parts)
    return f"(\n    {lines},\n){end}"


def _kind(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return re.sub(r"\b(?:[a-z_]+\.)+([A-Z]\w+)", r"\1", text)


def _first_line(item: Any) -> str:
    text = (inspect.getdoc(item) or "").partition("\n\n")[0].replace("``", "`")
    return " ".join(text.split()).replace("|", "\\|")


def _text(item: Any) -> str:
    """A docstring as Markdown: sections become lists, double backquotes single ones."""
    lines: list[str] = []
    for line in (inspect.getdoc(item) or "").replace("``", "`").splitlines():
        if re.fullmatch(r"(Args|Raises|Attributes):", line):
            lines += [f"*{line.removesuffix(':')}*", ""]
        elif match := re.fullmatch(r" {4}([\w, ]+): (.*)", line):
            lines.append(f"- `{match[1]}`: {match[2]}")
        elif line.startswith("        "):
            lines.append(f"  {line.strip()}")
        else:
            lines.append(line.strip())
    return "\n".join(lines).strip()


# The settings.


def _settings(config: type) -> Iterator[str]:
    own = [row for row in rows(config) if len(row.path) == 1]
    yield "| name | key | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for row in own:
        default = render(row.default)
        shown = f"`{default}`" if default else ""
        meaning = f"{row.help} {_bounds(row)}".strip().replace("|", "\\|")
        yield f"| `{row.path[0]}` | `{row.key}` | {shown} | {meaning} |"
    others = [
        field
        for field in dataclasses.fields(config)
        if field.name not in {row.path[0] for row in own}
    ]
    if others:
        yield f"\nFurther fields: {', '.join(map(_further, others))}."


def _further(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        default = field.default
        if isinstance(default, frozenset):
            default = ", ".join(map(str, sorted(default)))
        return f"`{field.name}` (default: {default})"
    return f"`{field.name}` (a `{field.type}`)"


def _bounds(row: Row) -> str:
    if row.choices:
        return f"One of {', '.join(row.choices)}."
    if row.low is not None and row.high is not None:
        return f"From {row.low} to {row.high}."
    if row.low is not None:
        return f"At least {row.low}."
    if row.high is not None:
        return f"At most {row.high}."
    return ""


def main() -> None:
    pages = {REFERENCE / "client.md": reference(), REFERENCE / "client-settings.md": settings()}
    for path, text in pages.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            raise SystemExit(f"{path.name} is out of date: run python tools/client_reference.py")


if __name__ == "__main__":
    main()
