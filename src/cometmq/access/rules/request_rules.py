"""What every request needs. A code that is not here is refused; a test walks ``RequestCode`` so that none is forgotten.

As RocketMQ 5 wherever it checks something. Where it is careless, ours demands what is sensible;
``rocketmq_rules`` has its own rules, for those who set ``accessChecks=rocketmq``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.access.rules import names_in_bodies as bodies
from cometmq.access.rules.need import (
    CREATE,
    DELETE,
    GET,
    PUB,
    PUB_SUB_GET,
    SUB,
    SUB_GET,
    SUB_UPDATE,
    UPDATE,
    Need,
    topic_need,
)
from cometmq.access.rules.rule import (
    ACCOUNT,
    NEVER,
    SUPER,
    Rule,
    cluster,
    fields,
    group,
    named,
    topic,
)
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.protocol.codes import RequestCode as Code
from cometmq.protocol.command import Command

_CLUSTER_GET = cluster(GET)
_CLUSTER_UPDATE = cluster(UPDATE)

_SEND = fields(topic("topic", PUB))
_SEND_V2 = fields(topic("b", PUB))
_CONSUME = fields(topic("topic", SUB), group("consumerGroup", SUB))
_TOPIC_GET = fields(topic("topic", GET))
_GROUP_GET = fields(group("group", GET))
_SINK = fields(group("sink", PUB))


def _route(command: Command) -> list[Need]:
    name = (command.ext or {}).get("topic", "")
    # Producers look there for brokers that create topics. It belongs to nobody, and sending to it is another request.
    return [] if name == AUTO_CREATE_TOPIC else [topic_need(name, PUB_SUB_GET)]


_CLIENTS: Final[dict[Code, Rule]] = {
    Code.SEND_MESSAGE: _SEND,
    Code.SEND_MESSAGE_V2: _SEND_V2,
    Code.SEND_BATCH_MESSAGE: _SEND_V2,
    Code.SEND_REPLY_MESSAGE: _SEND,
    Code.SEND_REPLY_MESSAGE_V2: _SEND_V2,
    Code.RECALL_MESSAGE: _SEND,
    Code.END_TRANSACTION: fields(
        topic("topic", PUB, is_optional=True), late="topic of the half message: Pub"
    ),
    Code.CONSUMER_SEND_MSG_BACK: fields(group("group", SUB), late="topic of the message: Sub"),
    Code.PULL_MESSAGE: _CONSUME,
    Code.LITE_PULL_MESSAGE: _CONSUME,
    Code.BULK_PULL: _CONSUME,
    Code.QUERY_MESSAGE: fields(topic("topic", SUB_GET)),
    Code.VIEW_MESSAGE_BY_ID: Rule(demand=ACCOUNT.demand, late="topic of the message: Sub or Get"),
    Code.QUERY_CONSUMER_OFFSET: fields(topic("topic", SUB_GET), group("consumerGroup", SUB_GET)),
    Code.UPDATE_CONSUMER_OFFSET: fields(
        topic("topic", SUB_UPDATE), group("consumerGroup", SUB_UPDATE)
    ),
    Code.SEARCH_OFFSET_BY_TIMESTAMP: fields(topic("topic", SUB_GET)),
    Code.GET_MAX_OFFSET: fields(topic("topic", SUB_GET)),
    Code.GET_MIN_OFFSET: fields(topic("topic", SUB_GET)),
    Code.GET_EARLIEST_MSG_STORETIME: fields(topic("topic", SUB_GET)),
    Code.HEART_BEAT: named(bodies.subscribed, "each consumer's group and topics: Sub"),
    Code.UNREGISTER_CLIENT: fields(group("consumerGroup", SUB, is_optional=True)),
    Code.GET_CONSUMER_LIST_BY_GROUP: fields(group("consumerGroup", SUB_GET)),
    Code.LOCK_BATCH_MQ: named(bodies.locked, "group and topics in the body: Sub"),
    Code.UNLOCK_BATCH_MQ: named(bodies.locked, "group and topics in the body: Sub"),
    Code.CHECK_CLIENT_CONFIG: named(
        bodies.checked_subscription, "group and topic in the body: Sub"
    ),
    Code.QUERY_ASSIGNMENT: named(bodies.assigned, "group and topic in the body: Sub"),
    Code.POP_MESSAGE: _CONSUME,
    Code.ACK_MESSAGE: _CONSUME,
    Code.PEEK_MESSAGE: _CONSUME,
    Code.CHANGE_MESSAGE_INVISIBLETIME: _CONSUME,
    Code.NOTIFICATION: _CONSUME,
    Code.POLLING_INFO: fields(topic("topic", GET), group("consumerGroup", GET)),
    Code.POP_ROLLBACK: _CLUSTER_UPDATE,
    Code.BATCH_ACK_MESSAGE: named(bodies.acknowledged, "groups and topics in the body: Sub"),
    # A sink writes under a name of its own, as a group of producers does.
    Code.OPEN_SINK: _SINK,
    Code.SINK_STORED: _SINK,
    Code.CLOSE_SINK: _SINK,
}

_TO_CLIENTS: Final[dict[Code, Rule]] = {
    Code.CHECK_TRANSACTION_STATE: NEVER,
    Code.NOTIFY_CONSUMER_IDS_CHANGED: NEVER,
    Code.RESET_CONSUMER_CLIENT_OFFSET: NEVER,
    Code.GET_CONSUMER_STATUS_FROM_CLIENT: NEVER,
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT: NEVER,
}

_TOPICS_AND_GROUPS: Final[dict[Code, Rule]] = {
    Code.UPDATE_AND_CREATE_TOPIC: fields(topic("topic", CREATE)),
    Code.UPDATE_AND_CREATE_TOPIC_LIST: named(bodies.created_topics, "topics in the body: Create"),
    Code.UPDATE_AND_CREATE_STATIC_TOPIC: fields(topic("topic", CREATE)),
    Code.DELETE_TOPIC_IN_BROKER: fields(topic("topic", DELETE)),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: named(
        bodies.created_group, "group in the body: Create"
    ),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: named(
        bodies.created_groups, "groups in the body: Create"
    ),
    Code.DELETE_SUBSCRIPTIONGROUP: fields(group("groupName", DELETE)),
    Code.GET_TOPIC_STATS_INFO: _TOPIC_GET,
    Code.QUERY_TOPIC_CONSUME_BY_WHO: _TOPIC_GET,
    Code.GET_TOPIC_CONFIG: _TOPIC_GET,
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _TOPIC_GET,
    Code.QUERY_CONSUME_QUEUE: fields(
        topic("topic", GET), group("consumerGroup", GET, is_optional=True)
    ),
    Code.GET_CONSUMER_CONNECTION_LIST: fields(group("consumerGroup", GET)),
    Code.GET_CONSUMER_RUNNING_INFO: fields(group("consumerGroup", GET)),
    Code.QUERY_TOPICS_BY_CONSUMER: _GROUP_GET,
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: _GROUP_GET,
    Code.GET_CONSUME_STATS: named(
        bodies.consume_stats, "group `consumerGroup`: Get; topics in `topic` and `topicList`: Get"
    ),
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: fields(topic("topic", GET), group("group", GET)),
    Code.QUERY_CONSUME_TIME_SPAN: fields(topic("topic", GET), group("group", GET)),
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: fields(
        topic("topic", GET, is_optional=True), group("group", GET)
    ),
    Code.QUERY_CORRECTION_OFFSET: named(
        bodies.compared_groups, "topic `topic` and groups `compareGroup`, `filterGroups`: Get"
    ),
    Code.INVOKE_BROKER_TO_RESET_OFFSET: fields(topic("topic", UPDATE), group("group", UPDATE)),
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN: fields(topic("topic", UPDATE), group("group", UPDATE)),
    Code.CLONE_GROUP_OFFSET: fields(
        topic("topic", UPDATE, is_optional=True),
        group("srcGroup", GET),
        group("destGroup", UPDATE),
    ),
    # Hands any message of the broker to a consumer.
    Code.CONSUME_MESSAGE_DIRECTLY: Rule(
        fields=(group("consumerGroup", SUB), topic("topic", SUB, is_optional=True)), cluster=GET
    ),
    Code.RESUME_CHECK_HALF_MESSAGE: Rule(
        fields=(topic("topic", UPDATE, is_optional=True),), cluster=UPDATE
    ),
    Code.SET_MESSAGE_REQUEST_MODE: named(
        bodies.request_mode, "group and topic in the body: Update"
    ),
    Code.GET_PARENT_TOPIC_INFO: _TOPIC_GET,
    Code.GET_LITE_TOPIC_INFO: fields(topic("parentTopic", GET)),
    Code.GET_LITE_CLIENT_INFO: fields(topic("parentTopic", GET), group("group", GET)),
    Code.GET_LITE_GROUP_INFO: _GROUP_GET,
}

_BROKER: Final[dict[Code, Rule]] = {
    Code.UPDATE_BROKER_CONFIG: _CLUSTER_UPDATE,
    Code.GET_BROKER_CONFIG: _CLUSTER_GET,
    Code.GET_BROKER_RUNTIME_INFO: _CLUSTER_GET,
    Code.GET_ALL_TOPIC_CONFIG: _CLUSTER_GET,
    Code.GET_ALL_CONSUMER_OFFSET: _CLUSTER_GET,
    Code.GET_ALL_DELAY_OFFSET: _CLUSTER_GET,
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _CLUSTER_GET,
    Code.GET_ALL_MESSAGE_REQUEST_MODE: _CLUSTER_GET,
    Code.GET_SINK_LANES: _CLUSTER_GET,
    Code.GET_TIMER_CHECK_POINT: _CLUSTER_GET,
    Code.GET_TIMER_METRICS: _CLUSTER_GET,
    Code.GET_PRODUCER_CONNECTION_LIST: _CLUSTER_GET,
    Code.GET_ALL_PRODUCER_INFO: _CLUSTER_GET,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _CLUSTER_GET,
    Code.VIEW_BROKER_STATS_DATA: _CLUSTER_GET,
    Code.GET_BROKER_CONSUME_STATS: _CLUSTER_GET,
    Code.GET_BROKER_HA_STATUS: _CLUSTER_GET,
    Code.GET_BROKER_EPOCH_CACHE: _CLUSTER_GET,
    Code.GET_COLD_DATA_FLOW_CTR_INFO: _CLUSTER_GET,
    Code.GET_BROKER_LITE_INFO: _CLUSTER_GET,
    Code.CLEAN_EXPIRED_CONSUMEQUEUE: _CLUSTER_UPDATE,
    Code.CLEAN_UNUSED_TOPIC: _CLUSTER_UPDATE,
    Code.DELETE_EXPIRED_COMMITLOG: _CLUSTER_UPDATE,
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _CLUSTER_UPDATE,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _CLUSTER_UPDATE,
    Code.SET_COMMITLOG_READ_MODE: _CLUSTER_UPDATE,
    Code.SWITCH_TIMER_ENGINE: _CLUSTER_UPDATE,
    Code.ADD_BROKER: _CLUSTER_UPDATE,
    Code.REMOVE_BROKER: _CLUSTER_UPDATE,
    Code.EXCHANGE_BROKER_HA_INFO: _CLUSTER_UPDATE,
    Code.RESET_MASTER_FLUSH_OFFSET: _CLUSTER_UPDATE,
    Code.NOTIFY_MIN_BROKER_ID_CHANGE: _CLUSTER_UPDATE,
    Code.NOTIFY_BROKER_ROLE_CHANGED: _CLUSTER_UPDATE,
    Code.HAND_OVER: _CLUSTER_UPDATE,
}

_ACCOUNTS: Final[dict[Code, Rule]] = {
    Code.UPDATE_AND_CREATE_ACL_CONFIG: _CLUSTER_UPDATE,
    Code.DELETE_ACL_CONFIG: _CLUSTER_UPDATE,
    Code.GET_BROKER_CLUSTER_ACL_INFO: _CLUSTER_GET,
    Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _CLUSTER_UPDATE,
    Code.GET_BROKER_CLUSTER_ACL_CONFIG: SUPER,
    Code.AUTH_CREATE_USER: _CLUSTER_UPDATE,
    Code.AUTH_UPDATE_USER: _CLUSTER_UPDATE,
    Code.AUTH_DELETE_USER: _CLUSTER_UPDATE,
    Code.AUTH_GET_USER: _CLUSTER_GET,
    Code.AUTH_LIST_USER: _CLUSTER_GET,
    Code.AUTH_CREATE_ACL: _CLUSTER_UPDATE,
    Code.AUTH_UPDATE_ACL: _CLUSTER_UPDATE,
    Code.AUTH_DELETE_ACL: _CLUSTER_UPDATE,
    Code.AUTH_GET_ACL: _CLUSTER_GET,
    Code.AUTH_LIST_ACL: _CLUSTER_GET,
    Code.GET_ACCOUNTS: SUPER,
}

_NAME_SERVER: Final[dict[Code, Rule]] = {
    Code.GET_ROUTEINFO_BY_TOPIC: named(
        _route, "topic `topic`: Get or Pub or Sub; nothing for TBW102", keys=("topic",)
    ),
    # Clients learn from it which brokers there are.
    Code.GET_BROKER_CLUSTER_INFO: ACCOUNT,
    Code.GET_KV_CONFIG: _CLUSTER_GET,
    Code.GET_KVLIST_BY_NAMESPACE: _CLUSTER_GET,
    Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _CLUSTER_GET,
    Code.GET_TOPICS_BY_CLUSTER: _CLUSTER_GET,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: _CLUSTER_GET,
    Code.GET_UNIT_TOPIC_LIST: _CLUSTER_GET,
    Code.GET_HAS_UNIT_SUB_TOPIC_LIST: _CLUSTER_GET,
    Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _CLUSTER_GET,
    Code.GET_NAMESRV_CONFIG: _CLUSTER_GET,
    Code.QUERY_DATA_VERSION: _CLUSTER_GET,
    Code.GET_BROKER_MEMBER_GROUP: _CLUSTER_GET,
    Code.PUT_KV_CONFIG: _CLUSTER_UPDATE,
    Code.DELETE_KV_CONFIG: _CLUSTER_UPDATE,
    Code.REGISTER_BROKER: _CLUSTER_UPDATE,
    Code.UNREGISTER_BROKER: _CLUSTER_UPDATE,
    Code.WIPE_WRITE_PERM_OF_BROKER: _CLUSTER_UPDATE,
    Code.ADD_WRITE_PERM_OF_BROKER: _CLUSTER_UPDATE,
    Code.DELETE_TOPIC_IN_NAMESRV: _CLUSTER_UPDATE,
    Code.REGISTER_TOPIC_IN_NAMESRV: _CLUSTER_UPDATE,
    Code.UPDATE_NAMESRV_CONFIG: _CLUSTER_UPDATE,
    Code.BROKER_HEARTBEAT: _CLUSTER_UPDATE,
}

_CONTROLLER: Final[dict[Code, Rule]] = {
    Code.CONTROLLER_GET_REPLICA_INFO: _CLUSTER_GET,
    Code.CONTROLLER_GET_METADATA_INFO: _CLUSTER_GET,
    Code.CONTROLLER_GET_SYNC_STATE_DATA: _CLUSTER_GET,
    Code.CONTROLLER_GET_NEXT_BROKER_ID: _CLUSTER_GET,
    Code.GET_CONTROLLER_CONFIG: _CLUSTER_GET,
    Code.CONTROLLER_ALTER_SYNC_STATE_SET: _CLUSTER_UPDATE,
    Code.CONTROLLER_ELECT_MASTER: _CLUSTER_UPDATE,
    Code.CONTROLLER_REGISTER_BROKER: _CLUSTER_UPDATE,
    Code.CONTROLLER_APPLY_BROKER_ID: _CLUSTER_UPDATE,
    Code.UPDATE_CONTROLLER_CONFIG: _CLUSTER_UPDATE,
    Code.CLEAN_BROKER_DATA: _CLUSTER_UPDATE,
}

SUBJECTS: Final[Mapping[str, Mapping[Code, Rule]]] = {
    "Clients": _CLIENTS,
    "Topics, groups and positions": _TOPICS_AND_GROUPS,
    "The broker itself": _BROKER,
    "Accounts": _ACCOUNTS,
    "Name server": _NAME_SERVER,
    "Controller": _CONTROLLER,
    "To clients": _TO_CLIENTS,
}

RULES: Final[Mapping[int, Rule]] = {
    code: rule for rules in SUBJECTS.values() for code, rule in rules.items()
}
