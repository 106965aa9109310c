"""Which queues a source reads: those of the named topics, or of all topics that match a pattern."""

from __future__ import annotations

import re

from cometmq.client.errors import NoRoute
from cometmq.client.sync.bulk_client import BulkClient
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import is_system_topic
from cometmq.spark.source.source_options import SourceOptions


def find_queues(client: BulkClient, options: SourceOptions) -> list[MessageQueue]:
    """All readable queues now.

    Raises:
        NoRoute: a topic that is named does not exist; a pattern may match none.
        NoNameServer: none answers.
    """
    queues: list[MessageQueue] = []
    if options.topics:
        for topic in options.topics:
            queues += client.queues(topic)
        return queues
    for topic in matching(client.topics(), options.topic_pattern):
        try:
            queues += client.queues(topic)
        except NoRoute:
            # Deleted since the list was made, or a topic that no broker serves at the moment.
            continue
    return queues


def matching(topics: list[str], pattern: str) -> list[str]:
    """Topics whose whole name matches. The system's never do; those of retries only when the pattern names their %."""
    expression = re.compile(pattern)
    return [
        topic
        for topic in topics
        if expression.fullmatch(topic)
        and not is_system_topic(topic)
        and (not topic.startswith("%") or "%" in pattern)
    ]
