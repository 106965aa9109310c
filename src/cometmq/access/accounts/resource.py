"""The resources that an entry of a policy is about, as text and as what they match.

*                 any resource of any kind
Topic:orders      this one
Topic:ord*        all whose names begin so
Topic:*           all of the kind
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cometmq.access.rules.need import Kind

_KINDS: Final = {kind.value.lower(): kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Resource:
    """``kind`` None means any. A prefix without characters means every name."""

    kind: Kind | None
    name: str
    is_prefix: bool = False

    def matches(self, kind: Kind, name: str) -> bool:
        if self.kind is not None and self.kind is not kind:
            return False
        return name.startswith(self.name) if self.is_prefix else name == self.name

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The least is the most specific: a kind before none, a name before a prefix, a longer prefix before others."""
        return self.kind is None, self.is_prefix, -len(self.name)

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        return f"{self.kind}:{self.name}{'*' if self.is_prefix else ''}"


def parse_resource(text: str | None) -> Resource | None:
    """None if the text is no resource."""
    if text is None:
        return None
    if text == "*":
        return Resource(None, "", is_prefix=True)
    kind_text, colon, name = text.partition(":")
    kind = _KINDS.get(kind_text.lower())
    if kind is None or not colon or not name:
        return None
    before, star, _ = name.partition("*")
    return Resource(kind, before, is_prefix=bool(star))
