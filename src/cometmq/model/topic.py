"""A topic's configuration and the version of a table of them."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from cometmq.model.flags import READ_WRITE
from cometmq.model.ids import Int32, Int64

QUEUES_MAX: Final = 65_536
"""Maximum for one topic on one broker, unless an operator allows more. RocketMQ users rarely exceed a thousand."""


class DataVersion(msgspec.Struct, kw_only=True, rename="camel"):
    """Tells whether two copies of a table are the same. ``state_version`` came with RocketMQ 5; 0 is left out."""

    OMITTED_WHEN_ZERO: ClassVar[tuple[str, ...]] = ("state_version",)

    counter: Int64 = 0
    timestamp: Int64 = 0
    state_version: Int64 = 0

    def next(self, now_ms: int) -> DataVersion:
        return DataVersion(
            counter=self.counter + 1, timestamp=now_ms, state_version=self.state_version
        )


class TopicQueues(msgspec.Struct, kw_only=True, rename="camel"):
    """Queues and permission of one topic on one broker: the part that a route contains."""

    topic_name: str
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = READ_WRITE
    topic_sys_flag: Int32 = 0

    @property
    def queue_count(self) -> int:
        """Queues that exist: a topic being scaled may read more than it writes, or vice versa."""
        return max(self.read_queue_nums, self.write_queue_nums)

    def queues_fault(self, queues_max: int) -> str | None:
        """Why a broker cannot have that many queues, or None."""
        for name, count in (
            ("readQueueNums", self.read_queue_nums),
            ("writeQueueNums", self.write_queue_nums),
        ):
            if not 0 <= count <= queues_max:
                return f"{name} must be between 0 and {queues_max}, not {count}"
        return None


class TopicConfig(TopicQueues, kw_only=True, rename="camel"):
    """Everything that a broker knows about a topic."""

    topic_filter_type: str = "SINGLE_TAG"
    order: bool = False
    attributes: dict[str, str] | None = None
