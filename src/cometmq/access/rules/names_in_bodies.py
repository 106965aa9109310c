"""Topics and groups that a request has in its body, or in a list. All raise RemoteProtocolError if there are none."""

from __future__ import annotations

from cometmq.access.rules.need import (
    CREATE,
    GET,
    SUB,
    UPDATE,
    Need,
    group_need,
    topic_need,
)
from cometmq.protocol.bodies.group import SubscriptionGroupList, decode_group_config
from cometmq.protocol.bodies.heartbeat import CheckClientConfigBody, decode_heartbeat
from cometmq.protocol.bodies.lock import LockBatchBody
from cometmq.protocol.bodies.pop import BatchAckBody, QueryAssignmentBody, SetMessageRequestModeBody
from cometmq.protocol.bodies.topic import TopicConfigList
from cometmq.protocol.command import Command


def subscribed(command: Command) -> list[Need]:
    """Request 34: producers need nothing before they send."""
    needs: list[Need] = []
    for consumer in decode_heartbeat(command.body).consumer_data_set:
        needs.append(group_need(consumer.group_name, SUB))
        needs += (topic_need(one.topic, SUB) for one in consumer.subscription_data_set)
    return needs


def locked(command: Command) -> list[Need]:
    """Requests 41 and 42."""
    body = LockBatchBody.decode(command.body)
    return [
        group_need(body.consumer_group, SUB),
        *(topic_need(queue.topic, SUB) for queue in body.mq_set),
    ]


def checked_subscription(command: Command) -> list[Need]:
    """Request 46."""
    body = CheckClientConfigBody.decode(command.body)
    return [group_need(body.group or "", SUB), topic_need(body.subscription_data.topic, SUB)]


def assigned(command: Command) -> list[Need]:
    """Request 400."""
    body = QueryAssignmentBody.decode(command.body)
    return [group_need(body.consumer_group, SUB), topic_need(body.topic, SUB)]


def request_mode(command: Command) -> list[Need]:
    """Request 401."""
    body = SetMessageRequestModeBody.decode(command.body)
    return [group_need(body.consumer_group, UPDATE), topic_need(body.topic, UPDATE)]


def acknowledged(command: Command) -> list[Need]:
    """Request 200151."""
    needs: list[Need] = []
    for ack in BatchAckBody.decode(command.body).acks:
        needs += (group_need(ack.consumer_group, SUB), topic_need(ack.topic, SUB))
    return needs


def created_topics(command: Command) -> list[Need]:
    """Request 18."""
    topics = TopicConfigList.decode(command.body).topic_config_list
    return [topic_need(one.topic_name, CREATE) for one in topics]


def created_group(command: Command) -> list[Need]:
    """Request 200."""
    return [group_need(decode_group_config(command.body).group_name, CREATE)]


def created_groups(command: Command) -> list[Need]:
    """Request 225."""
    groups = SubscriptionGroupList.decode(command.body).group_config_list
    return [group_need(one.group_name, CREATE) for one in groups]


def consume_stats(command: Command) -> list[Need]:
    """Request 208: one topic, several, or all that the group has consumed."""
    ext = command.ext or {}
    topics = [*ext.get("topicList", "").split(";"), *ext.get("topic", "").split(";")]
    return [
        group_need(ext.get("consumerGroup", ""), GET),
        *(topic_need(topic, GET) for topic in topics if topic),
    ]


def compared_groups(command: Command) -> list[Need]:
    """Request 308."""
    ext = command.ext or {}
    listed = (name.strip() for name in ext.get("filterGroups", "").split(","))
    groups = [ext.get("compareGroup", ""), *filter(None, listed)]
    return [
        topic_need(ext.get("topic", ""), GET),
        *(group_need(group, GET) for group in groups),
    ]
