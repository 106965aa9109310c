"""What the page for Java users calls ours exists: methods, parameters, fields and settings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import cometmq.client as shared
from cometmq.client import aio, sync

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-java.md"
PYTHON_SYNTAX = {
    "True",
    "async",
    "for",
    "with",
    "raise",
    "text",
    "function",
    "seconds",
    "n",
    "i",
    "...",
}


def _ours() -> set[str]:
    names: set[str] = {*shared.__all__, *aio.__all__, *sync.__all__}
    for module in (shared, aio, sync):
        for name in module.__all__:
            item = getattr(module, name)
            if not inspect.isclass(item):
                names |= set(inspect.signature(item).parameters)
                continue
            names |= set(dir(item)) | set(getattr(item, "__struct_fields__", ()))
            if dataclasses.is_dataclass(item):
                names |= {field.name for field in dataclasses.fields(item)}
            functions = [value for _, value in inspect.getmembers(item, inspect.isfunction)]
            for function in functions:
                names |= set(inspect.signature(function).parameters)
    return names | {"hooks"}


def test_every_name_in_the_columns_for_python_exists() -> None:
    text = PAGE.read_text().partition("## Different on purpose")[0].partition("## Classes")[2]
    cells = [line.split(" | ", 1)[1] for line in text.splitlines() if line.startswith("| ")]
    words = {
        word
        for cell in cells
        for code in re.findall(r"`([^`]+)`", cell)
        for word in re.findall(r"[A-Za-z_]+", re.sub(r'"[^"]*"', "", code))
    }
    words -= {"cometmq", "client", "aio", "sync", "SelectMessageQueueByHash", *PYTHON_SYNTAX}
    assert len(words) > 80
    assert sorted(words - _ours()) == []
