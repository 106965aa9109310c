"""Which implementation runs the hot loops: the compiled twins in this package, or the Python modules they are twins of.

The Python modules are complete, and the reference: a twin does the same, errors included. Whoever has a twin asks for
it here, once, when it is imported:

    _twin = twin("messages")
    answer_plain: Final[AnswerPlain] = answer_none if _twin is None else _twin.answer_plain

``COMETMQ_IMPL`` decides: ``auto`` (the default) takes the twins if they were compiled when the package was installed,
``python`` never, ``native`` insists. Why twins at all: docs/decisions/0043-compiled-twins.md.
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any, Final

VARIABLE: Final = "COMETMQ_IMPL"
AUTO: Final = "auto"
PYTHON: Final = "python"
NATIVE: Final = "native"

TWINS: Final = (
    *("expressions", "follow", "index", "messages", "pulls", "rows", "sends"),
    "signatures",
)
"""All compiled modules. They were compiled together, so all of them are there or none is used."""


def choose(asked: str) -> str:
    """The name of the implementation.

    Raises:
        ImportError: no such implementation, or it is not there.
    """
    if asked not in (AUTO, PYTHON, NATIVE):
        raise ImportError(f"{VARIABLE} must be {AUTO}, {PYTHON} or {NATIVE}, not {asked!r}")
    if asked == PYTHON:
        return PYTHON
    missing = [name for name in TWINS if find_spec(f"cometmq.native.{name}") is None]
    if not missing:
        return NATIVE
    if asked == AUTO:
        return PYTHON
    raise ImportError(
        f"{VARIABLE}={NATIVE}, but compiled modules are not there: {', '.join(missing)}. Install cometmq again where a "
        f"C compiler and Python's headers are, or leave {VARIABLE} away to run without them."
    )


NAME: Final = choose(os.environ.get(VARIABLE) or AUTO)


def twin(name: str) -> Any:
    """The compiled module of this name, or None. Imported now, since a twin may need what its users import, too."""
    assert name in TWINS, name
    return importlib.import_module(f"cometmq.native.{name}") if NAME == NATIVE else None
