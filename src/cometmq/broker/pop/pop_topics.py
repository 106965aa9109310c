"""Topics of POP consumption: where messages are tried again, and where check-points are kept. Pure."""

from __future__ import annotations

from typing import Final

from cometmq.model.names import RETRY_PREFIX

ANY_QUEUE: Final = -1
NORMAL: Final = "0"
RETRY_V1: Final = "1"
RETRY_V2: Final = "2"

REVIVE_QUEUE_COUNT: Final = 8
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""RocketMQ's name for who reads the revive topic: up to its offsets, these included, all is done with."""
SEEN_GROUP: Final = "CID_RMQ_SYS_REVIVE_SEEN"
"""Ours: up to where the saved positions of the groups know of the check-points."""


def revive_topic(cluster: str) -> str:
    return f"rmq_sys_REVIVE_LOG_{cluster}"


def retry_topic_v1(group: str, topic: str) -> str:
    return f"{RETRY_PREFIX}{group}_{topic}"


def retry_topic_v2(group: str, topic: str) -> str:
    return f"{RETRY_PREFIX}{group}+{topic}"


def kind_of(topic: str) -> str:
    """How infos and handles mark a topic."""
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY_V1


def real_topic(topic: str, group: str, kind: str) -> str:
    """The topic that a message was popped of, from the one that was asked for and the mark."""
    if kind == RETRY_V1:
        return retry_topic_v1(group, topic)
    return retry_topic_v2(group, topic) if kind == RETRY_V2 else topic


def retry_origin(topic: str, group: str) -> str:
    """The topic that consumers ask for, of the one that a message was popped of."""
    for prefix in (retry_topic_v1(group, ""), retry_topic_v2(group, "")):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix)
    return topic
