"""Names of topics and groups: which are legal, which belong to the system, which prefix means what."""

from __future__ import annotations

import re
from typing import Final

from cometmq.base.errors import UsageError

TOPIC_BYTES_MAX: Final = 127
GROUP_BYTES_MAX: Final = 255
RETRY_TOPIC_BYTES_MAX: Final = 255
RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
SYSTEM_PREFIX: Final = "rmq_sys_"
NAME_PATTERN: Final = "^[%|a-zA-Z0-9_-]+$"

AUTO_CREATE_TOPIC: Final = "TBW102"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANSACTION_DISCARD_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
REPLY_SUFFIX: Final = "REPLY_TOPIC"

NOT_SENDABLE: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        HALF_OP_TOPIC,
        TRANSACTION_DISCARD_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        TIMER_TOPIC,
    }
)
"""Topics that clients must not send to."""

_BROKERS_OWN: Final = frozenset({SCHEDULE_TOPIC, HALF_TOPIC, HALF_OP_TOPIC})

SYSTEM_TOPICS: Final = NOT_SENDABLE | {AUTO_CREATE_TOPIC, BENCHMARK_TOPIC, TRACE_TOPIC}

SYSTEM_GROUPS: Final = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+\Z")


def topic_fault(topic: str | None) -> str | None:
    """What is wrong with a topic name, in RocketMQ's words, or None."""
    if topic is None or not topic.strip():
        return "The specified topic is blank."
    if not _LEGAL.match(topic):
        return f"The specified topic contains illegal characters, allowing only {NAME_PATTERN}"
    if len(topic) > TOPIC_BYTES_MAX:
        return f"The specified topic is longer than topic max length {TOPIC_BYTES_MAX}."
    return None


def stored_topic_fault(topic: str) -> str | None:
    """What is wrong with a topic name for stored messages, or None.

    A retry topic's name consists of a group's and a topic's: longer than either, and with a plus sign between them.
    """
    if not topic.startswith(RETRY_PREFIX):
        return topic_fault(topic)
    if not _LEGAL.match(topic.replace("+", "_", 1)):
        return f"The specified topic contains illegal characters, allowing only {NAME_PATTERN}"
    if len(topic) > RETRY_TOPIC_BYTES_MAX:
        return f"The specified topic is longer than topic max length {RETRY_TOPIC_BYTES_MAX}."
    return None


def group_fault(group: str | None) -> str | None:
    """What is wrong with a group name, or None."""
    if group is None or not group.strip():
        return "the specified group is blank"
    if not _LEGAL.match(group):
        return f"the specified group[{group}] contains illegal characters, allowing only {NAME_PATTERN}"
    if len(group) > GROUP_BYTES_MAX:
        return f"the specified group is longer than group max length {GROUP_BYTES_MAX}."
    return None


def check_topic(topic: str) -> None:
    if fault := topic_fault(topic):
        raise UsageError(fault)


def check_group(group: str) -> None:
    if fault := group_fault(group):
        raise UsageError(fault)


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    return DLQ_PREFIX + group


def reply_topic(cluster: str) -> str:
    return f"{cluster}_{REPLY_SUFFIX}"


def is_brokers_own(topic: str) -> bool:
    """Whether the broker alone reads a topic: waiting messages, transactions, what is popped."""
    return topic in _BROKERS_OWN or topic.startswith(SYSTEM_PREFIX)


def holds_messages_of_others(topic: str) -> bool:
    """Whether messages of any other topic lie there, to wait or because they were given up."""
    return is_brokers_own(topic) or topic == TRANSACTION_DISCARD_TOPIC


def is_system_topic(topic: str) -> bool:
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)
