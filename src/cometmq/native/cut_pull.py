"""A pull whose header is known but for four numbers, so that it need not be decoded.

Pulls of one reader differ by their queue, their offsets and their number only. The compiled twin (``native.pulls``)
cuts such a pull out of what a connection received; whoever learnt its header knows what the rest of it means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

PULL: Final = -11
"""The code of a pull that was cut. Requests never have a negative one that a server handles."""


class CutPull(Protocol):
    code: int
    """``PULL``."""
    flag: int
    """0."""
    queue_id: int
    queue_offset: int
    commit_offset: int
    opaque: int

    @property
    def known(self) -> Any:
        """What was learnt of its header."""
        ...

    @property
    def end(self) -> int:
        """Where the pull ends in what was received."""
        ...

    def header(self) -> bytes:
        """All of the request, which has no body, in JSON."""
        ...


CutOnePull = Callable[[bytes, int, int], CutPull | None]
"""Takes what was received, where the next frame begins, and the size of the largest frame."""
