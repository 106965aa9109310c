"""Where RocketMQ's own rules differ from ours: what it does not check, and whose word it takes.

They apply with ``accessChecks=rocketmq``. Its name server checks nothing at all, which is not repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.access.rules.need import GET, PUB, SUB, UPDATE, Kind, Need, group_need
from cometmq.access.rules.request_rules import RULES
from cometmq.access.rules.rule import ACCOUNT, SUPER, Demand, Rule, fields, group, named, topic
from cometmq.model.names import RETRY_PREFIX
from cometmq.protocol.codes import RequestCode as Code
from cometmq.protocol.command import Command


def _sent(topic_key: str, group_key: str) -> Rule:
    def read(command: Command) -> list[Need]:
        """The group that the sender names stands for any retry topic."""
        ext = command.ext or {}
        name = ext.get(topic_key, "")
        if not name.startswith(RETRY_PREFIX):
            return [Need(Kind.TOPIC, name, PUB)]
        return [group_need(ext.get(group_key) or name.removeprefix(RETRY_PREFIX), SUB)]

    return named(
        read,
        f"topic `{topic_key}`: Pub; if it is a retry topic, group `{group_key}`: Sub",
        keys=(topic_key, group_key),
    )


def _but_retry_topics(rule: Rule) -> Rule:
    """Retry topics may be read by whoever may read for any group."""

    def read(command: Command) -> list[Need]:
        ext = command.ext or {}
        is_retry = ext.get("topic", "").startswith(RETRY_PREFIX)
        return [
            group_need(ext.get(field.key, ""), field.actions)
            if field.kind is Kind.GROUP
            else Need(Kind.TOPIC, ext.get(field.key, ""), field.actions)
            for field in rule.fields
            if field.kind is Kind.GROUP or not is_retry
        ]

    return named(read, f"{rule}; nothing for the topic if it is a retry topic", keys=rule.keys)


_UNCHECKED: Final = (
    Code.CHECK_CLIENT_CONFIG,
    Code.SEND_REPLY_MESSAGE,
    Code.SEND_REPLY_MESSAGE_V2,
    Code.LITE_PULL_MESSAGE,
    Code.BATCH_ACK_MESSAGE,
    Code.POP_ROLLBACK,
    Code.QUERY_ASSIGNMENT,
    Code.SET_MESSAGE_REQUEST_MODE,
    Code.GET_ALL_MESSAGE_REQUEST_MODE,
    Code.UPDATE_AND_CREATE_TOPIC_LIST,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    Code.GET_ALL_TOPIC_CONFIG,
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    Code.GET_ALL_CONSUMER_OFFSET,
    Code.GET_ALL_DELAY_OFFSET,
    Code.GET_TIMER_CHECK_POINT,
    Code.GET_TIMER_METRICS,
    Code.UPDATE_BROKER_CONFIG,
    Code.GET_BROKER_CONFIG,
    Code.GET_BROKER_RUNTIME_INFO,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    Code.CLEAN_EXPIRED_CONSUMEQUEUE,
    Code.CLEAN_UNUSED_TOPIC,
    Code.DELETE_EXPIRED_COMMITLOG,
    Code.GET_BROKER_HA_STATUS,
    Code.GET_BROKER_EPOCH_CACHE,
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    Code.GET_COLD_DATA_FLOW_CTR_INFO,
    Code.SET_COMMITLOG_READ_MODE,
    Code.UPDATE_AND_CREATE_ACL_CONFIG,
    Code.DELETE_ACL_CONFIG,
    Code.GET_BROKER_CLUSTER_ACL_INFO,
    Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    Code.GET_BROKER_CLUSTER_ACL_CONFIG,
)
"""Any valid account may send them."""

_TOPIC_GET = fields(topic("topic", GET))

_DIFFERENT: Final[dict[int, Rule]] = {
    **dict.fromkeys(_UNCHECKED, ACCOUNT),
    Code.SEND_MESSAGE: _sent("topic", "group"),
    Code.SEND_MESSAGE_V2: _sent("b", "a"),
    Code.SEND_BATCH_MESSAGE: _sent("b", "a"),
    Code.END_TRANSACTION: fields(topic("topic", PUB, is_optional=True)),
    Code.VIEW_MESSAGE_BY_ID: fields(topic("topic", GET, is_optional=True)),
    Code.CONSUMER_SEND_MSG_BACK: fields(group("group", SUB)),
    Code.PULL_MESSAGE: _but_retry_topics(RULES[Code.PULL_MESSAGE]),
    Code.QUERY_CONSUMER_OFFSET: _but_retry_topics(RULES[Code.QUERY_CONSUMER_OFFSET]),
    Code.UPDATE_CONSUMER_OFFSET: _but_retry_topics(RULES[Code.UPDATE_CONSUMER_OFFSET]),
    Code.SEARCH_OFFSET_BY_TIMESTAMP: _TOPIC_GET,
    Code.GET_MAX_OFFSET: _TOPIC_GET,
    Code.GET_MIN_OFFSET: _TOPIC_GET,
    Code.GET_EARLIEST_MSG_STORETIME: _TOPIC_GET,
    Code.CONSUME_MESSAGE_DIRECTLY: fields(
        group("consumerGroup", SUB), topic("topic", SUB, is_optional=True)
    ),
    Code.CLONE_GROUP_OFFSET: fields(
        topic("topic", UPDATE, is_optional=True), group("destGroup", UPDATE)
    ),
    Code.RESUME_CHECK_HALF_MESSAGE: fields(topic("topic", UPDATE, is_optional=True)),
}

ROCKETMQ_RULES: Final[Mapping[int, Rule]] = {**RULES, **_DIFFERENT}
"""Of RocketMQ 5."""

_PLAIN: Final[dict[int, Rule]] = {
    Code.SEND_MESSAGE: _sent("topic", "group"),
    Code.SEND_MESSAGE_V2: _sent("b", "a"),
    Code.CONSUMER_SEND_MSG_BACK: fields(group("group", SUB)),
    Code.PULL_MESSAGE: RULES[Code.PULL_MESSAGE],
    Code.QUERY_MESSAGE: fields(topic("topic", SUB)),
    Code.HEART_BEAT: RULES[Code.HEART_BEAT],
    Code.UNREGISTER_CLIENT: RULES[Code.UNREGISTER_CLIENT],
    Code.GET_CONSUMER_LIST_BY_GROUP: fields(group("consumerGroup", SUB)),
    Code.UPDATE_CONSUMER_OFFSET: fields(topic("topic", SUB), group("consumerGroup", SUB)),
    Code.UPDATE_AND_CREATE_TOPIC: SUPER,
    Code.UPDATE_BROKER_CONFIG: SUPER,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: SUPER,
    Code.DELETE_SUBSCRIPTIONGROUP: SUPER,
    Code.DELETE_TOPIC_IN_BROKER: SUPER,
    Code.GET_ACCOUNTS: SUPER,
}

PLAIN_ROCKETMQ_RULES: Final[Mapping[int, Rule]] = {
    code: _PLAIN.get(code, rule if rule.demand is Demand.NEVER else ACCOUNT)
    for code, rule in RULES.items()
}
"""Of RocketMQ 4: beyond these, any valid account may do everything."""
