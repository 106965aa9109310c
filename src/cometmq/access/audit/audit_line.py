"""What the audit log says about a request: who, from where, what, to what, and how it ended. Never a secret.

{"at":"2026-11-16T09:30:00.123Z","account":"admin","peer":"10.0.0.7:51012","request":"DELETE_TOPIC_IN_BROKER",
 "code":17,"target":{"topic":"Orders"},"result":0}
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cometmq.base.errors import CometError
from cometmq.base.properties_file import parse_properties_body
from cometmq.protocol.bodies.auth import Acl, User
from cometmq.protocol.bodies.group import SubscriptionGroupList, decode_group_config
from cometmq.protocol.bodies.pop import SetMessageRequestModeBody
from cometmq.protocol.bodies.topic import TopicConfigList
from cometmq.protocol.codes import RequestCode as Code
from cometmq.protocol.command import Command

AUDITED: Final = frozenset(
    {
        Code.UPDATE_AND_CREATE_TOPIC,
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.UPDATE_AND_CREATE_STATIC_TOPIC,
        Code.DELETE_TOPIC_IN_BROKER,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Code.DELETE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
        Code.SET_MESSAGE_REQUEST_MODE,
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        Code.CLONE_GROUP_OFFSET,
        Code.RESUME_CHECK_HALF_MESSAGE,
        Code.CONSUME_MESSAGE_DIRECTLY,
        Code.CLEAN_EXPIRED_CONSUMEQUEUE,
        Code.CLEAN_UNUSED_TOPIC,
        Code.DELETE_EXPIRED_COMMITLOG,
        Code.POP_ROLLBACK,
        Code.RESET_MASTER_FLUSH_OFFSET,
        Code.ADD_BROKER,
        Code.REMOVE_BROKER,
        Code.SWITCH_TIMER_ENGINE,
        Code.SET_COMMITLOG_READ_MODE,
        Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
        Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
        Code.UPDATE_BROKER_CONFIG,
        Code.UPDATE_NAMESRV_CONFIG,
        Code.UPDATE_CONTROLLER_CONFIG,
        Code.PUT_KV_CONFIG,
        Code.DELETE_KV_CONFIG,
        Code.WIPE_WRITE_PERM_OF_BROKER,
        Code.ADD_WRITE_PERM_OF_BROKER,
        Code.DELETE_TOPIC_IN_NAMESRV,
        Code.REGISTER_TOPIC_IN_NAMESRV,
        Code.CONTROLLER_ELECT_MASTER,
        Code.CLEAN_BROKER_DATA,
        Code.HAND_OVER,
        Code.NOTIFY_BROKER_ROLE_CHANGED,
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        Code.GET_BROKER_CLUSTER_ACL_CONFIG,
        Code.AUTH_CREATE_USER,
        Code.AUTH_UPDATE_USER,
        Code.AUTH_DELETE_USER,
        Code.AUTH_GET_USER,
        Code.AUTH_LIST_USER,
        Code.AUTH_CREATE_ACL,
        Code.AUTH_UPDATE_ACL,
        Code.AUTH_DELETE_ACL,
    }
)
"""Requests of operators that change something, and those that show secrets of accounts."""

TEXT_CHARS_MAX: Final = 300
NAMES_MAX: Final = 100

# What is not named here is not written: a secret must not get into the log because a header gained a field.
_FIELDS: Final = (
    *("topic", "group", "groupName", "consumerGroup", "srcGroup", "destGroup", "clientId", "msgId"),
    *("perm", "readQueueNums", "writeQueueNums", "order", "attributes", "cleanOffset"),
    *("removeOffset", "timestamp", "isForce", "queueId", "offset", "offline", "readable"),
    *("namespace", "key", "clusterName", "brokerName", "brokerId", "designateElect"),
    *("brokerControllerIdsToClean", "isCleanLivingBroker"),
    *("masterBrokerId", "masterEpoch", "successorId"),
    *("accessKey", "admin", "defaultTopicPerm", "defaultGroupPerm", "topicPerms", "groupPerms"),
    *("whiteRemoteAddress", "globalWhiteAddrs", "aclFileFullPath"),
    *("username", "subject", "policyType", "resource"),
)


def audit_line(
    command: Command, *, account: str, peer: str, wall_ms: int, result: int, reason: str | None
) -> bytes:
    """Args: result: the code of the reply; reason: its remark, if it is a refusal."""
    line: dict[str, Any] = {
        "at": _utc(wall_ms),
        "account": account[:TEXT_CHARS_MAX],
        "peer": peer,
        "request": _name(command.code),
        "code": command.code,
        "target": target_of(command),
        "result": result,
    }
    if reason is not None:
        line["reason"] = reason[:TEXT_CHARS_MAX]
    return msgspec.json.encode(line)


def missing_line(why: str, count: int, wall_ms: int) -> bytes:
    """Says that lines are missing here."""
    return msgspec.json.encode({"at": _utc(wall_ms), why: count})


def target_of(command: Command) -> dict[str, Any]:
    """Names and values that the request is about."""
    ext = command.ext or {}
    target: dict[str, Any] = {key: ext[key][:TEXT_CHARS_MAX] for key in _FIELDS if key in ext}
    read = _BODIES.get(command.code)
    if read is not None and command.body:
        try:
            target.update(read(bytes(command.body)))
        except CometError as error:
            target["body"] = f"unreadable: {error}"[:TEXT_CHARS_MAX]
    return target


def _topics(body: bytes) -> dict[str, Any]:
    topics = TopicConfigList.decode(body).topic_config_list
    return {
        "topics": [one.topic_name[:TEXT_CHARS_MAX] for one in topics[:NAMES_MAX]],
        "count": len(topics),
    }


def _group(body: bytes) -> dict[str, Any]:
    return {"group": decode_group_config(body).group_name}


def _groups(body: bytes) -> dict[str, Any]:
    groups = SubscriptionGroupList.decode(body).group_config_list
    return {
        "groups": [one.group_name[:TEXT_CHARS_MAX] for one in groups[:NAMES_MAX]],
        "count": len(groups),
    }


def _mode(body: bytes) -> dict[str, Any]:
    mode = SetMessageRequestModeBody.decode(body)
    return {"topic": mode.topic, "group": mode.consumer_group, "mode": mode.mode}


def _settings(body: bytes) -> dict[str, Any]:
    """Keys only: a value may be a secret, if somebody tries to set one."""
    return {"keys": sorted(parse_properties_body(body))[:NAMES_MAX]}


def _user(body: bytes) -> dict[str, Any]:
    user = User.decode(body)
    given = {"userType": user.user_type, "userStatus": user.user_status}
    given["password"] = "changed" if user.password else None
    return {key: value for key, value in given.items() if value is not None}


def _acl(body: bytes) -> dict[str, Any]:
    return {"acl": Acl.decode(body).encode().decode()[:TEXT_CHARS_MAX]}


_BODIES: Final[dict[int, Callable[[bytes], dict[str, Any]]]] = {
    Code.UPDATE_AND_CREATE_TOPIC_LIST: _topics,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _group,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _groups,
    Code.SET_MESSAGE_REQUEST_MODE: _mode,
    Code.UPDATE_BROKER_CONFIG: _settings,
    Code.UPDATE_NAMESRV_CONFIG: _settings,
    Code.UPDATE_CONTROLLER_CONFIG: _settings,
    Code.AUTH_CREATE_USER: _user,
    Code.AUTH_UPDATE_USER: _user,
    Code.AUTH_CREATE_ACL: _acl,
    Code.AUTH_UPDATE_ACL: _acl,
}


def _name(code: int) -> str:
    return Code(code).name if code in Code._value2member_map_ else str(code)


def _utc(wall_ms: int) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(wall_ms // 1000))
    return f"{seconds}.{wall_ms % 1000:03d}Z"
