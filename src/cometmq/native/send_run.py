"""A run of sends: neighbours in what a connection received at once, which a server may take as one request.

The compiled twin (``native.sends``) cuts runs of the sends that need no decision of their own, and whoever handles them
works on all at once. Everybody else takes a run apart, frame by frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

RUN: Final = -310
"""The code of a run. Requests never have a negative one that a server handles."""


Names = Mapping[int, tuple[str, ...] | None]
"""Of fields, by request code."""


class Claim(Protocol):
    """What requests say about themselves."""

    @property
    def said(self) -> tuple[Any, ...]:
        """A code, an account, and the values of some fields, with None for one that is missing."""
        ...


class SendRun(Protocol):
    code: int
    """``RUN``."""
    flag: int
    """0."""

    @property
    def end(self) -> int:
        """Where the run ends in what was received."""
        ...

    def __len__(self) -> int:
        """How many messages it has. A request has one, or several that it sends as a batch."""
        ...

    def frame(self, at: int, /) -> bytes:
        """The request that begins at a message, as it came."""
        ...

    def after(self, at: int, /) -> int:
        """At which message the request after that one begins."""
        ...

    def claim(self, at: int, names: Names, /) -> Claim | None:
        """What the request says that begins at a message. None: it has to be decoded to know that."""
        ...

    def signed(self, start: int, stop: int, claim: Claim, key: Any, /) -> int:
        """Where the requests end that make this claim, with signatures that are right.

        Args:
            key: ``Verifier.key``.
        """
        ...


def starts_of(run: SendRun) -> Iterator[int]:
    """At which messages the requests of a run begin."""
    at = 0
    while at < len(run):
        yield at
        at = run.after(at)


CutRun = Callable[[bytes, int, int], SendRun | None]
"""Takes what was received, where the next frame begins, and the size of the largest frame."""
