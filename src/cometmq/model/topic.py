"""A topic's configuration and the version of a table of them."""

from __future__ import annotations

import msgspec

from cometmq.model.flags import READ_WRITE


class DataVersion(msgspec.Struct, kw_only=True, rename="camel"):
    """Says whether two copies of a table are the same. ``state_version`` came with RocketMQ 5 and is left out when 0."""

    counter: int = 0
    timestamp: int = 0
    state_version: int = 0

    def next(self, now_ms: int) -> DataVersion:
        return DataVersion(
            counter=self.counter + 1, timestamp=now_ms, state_version=self.state_version
        )


class TopicConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """Queues and permission of one topic on one broker."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = READ_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] | None = None

    @property
    def queue_count(self) -> int:
        """Queues that exist: a topic being scaled may read more than it writes, or the other way round."""
        return max(self.read_queue_nums, self.write_queue_nums)
