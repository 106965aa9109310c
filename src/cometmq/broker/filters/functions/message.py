"""A message as a filter function sees it."""

from __future__ import annotations

from functools import cached_property

from cometmq.broker.filters.functions.protocol import FunctionMessage
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.properties import KEYS, TAGS, parse_properties, split_keys


class Message:
    """Nothing of it is unpacked before it is asked for."""

    def __init__(self, stored: FunctionMessage) -> None:
        self._stored = stored

    @property
    def topic(self) -> str:
        return self._stored.topic

    @property
    def queue_offset(self) -> int:
        return self._stored.queue_offset

    @cached_property
    def properties(self) -> dict[str, str]:
        return parse_properties(self._stored.properties_text)

    @property
    def tag(self) -> str | None:
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        return split_keys(self.properties.get(KEYS))

    @cached_property
    def body(self) -> bytes:
        """The body as it was sent, unpacked if it was compressed."""
        return decompress(self._stored.body, self._stored.sys_flag)
