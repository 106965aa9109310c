"""A message as a user sends it, and as a consumer gets it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cometmq.base.errors import UsageError
from cometmq.model.properties import (
    KEYS,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    RESERVED,
    TAGS,
)
from cometmq.model.received_message import ReceivedMessage as ReceivedMessage


@dataclass(slots=True, kw_only=True)
class Message:
    """What a producer sends: ``Message(topic="Orders", body=b"...", tags="paid", keys=["o-17"])``."""

    topic: str
    body: bytes
    tags: str | None = None
    keys: Iterable[str] = ()
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0

    def system_properties(self) -> dict[str, str]:
        """The user's properties with tags and keys among them.

        Raises:
            UsageError: a reserved or empty name, an empty value, or one of the two separator characters.
        """
        for name, value in self.properties.items():
            if name in RESERVED:
                raise UsageError(f"property name {name!r} is reserved; choose another")
            if not name or not value:
                raise UsageError(f"property {name!r}={value!r}: name and value must not be empty")
        pairs = dict(self.properties)
        keys = [self.keys] if isinstance(self.keys, str) else list(self.keys)
        if keys:
            pairs[KEYS] = " ".join(keys)
        if self.tags:
            pairs[TAGS] = self.tags
        for name, value in pairs.items():
            if NAME_SEPARATOR in name + value or PAIR_SEPARATOR in name + value:
                raise UsageError(f"property {name!r} holds \\x01 or \\x02, which separate pairs")
        return pairs
