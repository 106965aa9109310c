"""Whom a request comes from, and what decides about it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cometmq.access.rules.need import Action
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import Verifier


class Identity(NamedTuple):
    """
    Attributes:
        name: may be empty.
        is_free: nothing is asked of it, because of its address or because nobody is asked.
        is_stranger: it has not said who it is, and is served while not all peers have accounts yet.
    """

    name: str
    is_super: bool = False
    is_free: bool = False
    is_stranger: bool = False


class Judge(Protocol):
    """Decides about requests, from what it holds in memory. All of it belongs to the event loop's thread."""

    def identify(self, host: str, command: Command) -> Identity:
        """Raises AccessRefused if the sender is not who it says it is, or says nothing."""
        ...

    def signer(self, host: str, name: str) -> tuple[Identity, Verifier] | None:
        """Who is let in from there, in this name, for nothing but its signature; None if ``identify`` looks at more."""
        ...

    def certified(self, name: str) -> Identity:
        """Of a sender that has proved by its certificate that it is ``name``. Raises AccessRefused: no such account."""
        ...

    def permit(self, identity: Identity, host: str, command: Command) -> None:
        """Raises AccessRefused if this sender may not send this request from there; RemoteProtocolError if it cannot
        be read."""
        ...

    def permit_topic(
        self, identity: Identity, host: str, topic: str, actions: frozenset[Action]
    ) -> None:
        """The same for a topic that only the processor of a request can know. Raises AccessRefused."""
        ...

    def keys(self, code: int) -> tuple[str, ...] | None:
        """The fields of a header that ``permit`` looks at; None if it looks at more."""
        ...
