"""Errors of the admin library, besides those of the client and of the servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cometmq.base.errors import CometError, UsageError
from cometmq.client.errors import NoRoute


class NoSuchName(UsageError):
    """A cluster, broker, topic, group or account that is not there; the text says which ones are."""


class NoSuchTopic(NoRoute, NoSuchName):
    """A topic that no name server knows."""


class NeverOnline(NoRoute, NoSuchName):
    """A group of which no consumer ever connected to these brokers, or none while its topics existed."""

    advice = "check the spelling of its name; admin.groups.names and `mqadmin consumerProgress` list the groups"


class PartialFailure(CometError):
    """Some servers did not do what was asked. ``done`` and ``failed`` are their addresses."""

    def __init__(self, what: str, done: Sequence[str], failed: Mapping[str, CometError]) -> None:
        super().__init__(what, tuple(done), dict(failed))
        self.what = what
        self.done = tuple(done)
        self.failed = dict(failed)

    def __str__(self) -> str:
        count = len(self.done) + len(self.failed)
        reasons = "; ".join(f"{address}: {error}" for address, error in self.failed.items())
        done = f"done at {', '.join(self.done)}" if self.done else "done at none"
        return f"{self.what} failed at {len(self.failed)} of {count} servers ({reasons}); {done}"


def no_such(kind: str, name: str, known: Sequence[str]) -> NoSuchName:
    """The error for a name that is not there, with some of those that are."""
    shown = sorted(known)[:SHOWN_NAMES_MAX]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    there = f"there are: {', '.join(shown)}{more}" if shown else "there are none"
    return NoSuchName(f"no {kind} {name!r}; {there}")


SHOWN_NAMES_MAX = 10
