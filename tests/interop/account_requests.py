"""Every request that a broker knows, from accounts that may do little: which are refused, and in which words."""

from __future__ import annotations

import asyncio
import json

from cometmq.access.rules.rocketmq_rules import ROCKETMQ_RULES
from cometmq.access.rules.rule import Demand
from cometmq.base.errors import CallTimedOut
from cometmq.protocol.codes import RequestCode as Code
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

from .account_attempts import shown
from .account_servers import CLOSED, GROUPS_ALONE, STRANGERS, TOPICS_ALONE, GuardedBroker

LET_THROUGH = "let through"
NOT_SERVED = "not served"
_OURS_ALONE = range(29_000, 30_000)
BROKER_CODES = tuple(
    sorted(
        code
        for code, rule in ROCKETMQ_RULES.items()
        if rule.demand is not Demand.NEVER and code not in _OURS_ALONE
    )
)
_CALL_SECONDS = 5.0
_ROLLBACK = 12

_TOPIC_FIELDS = ("topic", "b", "parentTopic")
_GROUP_FIELDS = (
    *("group", "groupName", "consumerGroup", "producerGroup", "a"),
    *("srcGroup", "destGroup", "compareGroup"),
)
# RocketMQ cannot tell what a request is about if a field of its header is missing that it takes for granted.
_ZERO_FIELDS = (
    *("queueId", "queueOffset", "offset", "commitOffset", "maxMsgNums", "sysFlag", "subVersion"),
    *("suspendTimeoutMillis", "defaultTopicQueueNums", "bornTimestamp", "flag", "delayLevel"),
    *("timestamp", "maxNum", "beginTimestamp", "endTimestamp", "invisibleTime", "pollTime"),
    *("bornTime", "initMode", "index", "count", "readQueueNums", "writeQueueNums", "perm"),
    *("tranStateTableOffset", "commitLogOffset", "topicSysFlag"),
    *("d", "e", "f", "g", "h", "j"),
)
_FIELDS = {
    **dict.fromkeys(_ZERO_FIELDS, "0"),
    **dict.fromkeys(_TOPIC_FIELDS, CLOSED),
    **dict.fromkeys(_GROUP_FIELDS, STRANGERS),
    "commitOrRollback": str(_ROLLBACK),
    "defaultTopic": "TBW102",
    "c": "TBW102",
    "topicFilterType": "SINGLE_TAG",
    "order": "false",
    "key": "key",
    "clientID": "client",
    "username": "nobody",
    "subject": "User:nobody",
    "accessKey": "account123",
    "extraInfo": "0 0 0 0 0 0 0 0",
    "recallHandle": "handle",
    "statsName": "name",
    "statsKey": "key",
}

_SUBSCRIPTION = {"topic": CLOSED, "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}
_QUEUE = {"topic": CLOSED, "brokerName": "interop-broker", "queueId": 0}
_LOCKS = {"consumerGroup": STRANGERS, "clientId": "client", "mqSet": [_QUEUE]}
_BODIES: dict[int, object] = {
    Code.HEART_BEAT: {
        "clientID": "client",
        "producerDataSet": [],
        "consumerDataSet": [
            {
                "groupName": STRANGERS,
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "subscriptionDataSet": [_SUBSCRIPTION],
                "unitMode": False,
            }
        ],
    },
    Code.LOCK_BATCH_MQ: _LOCKS,
    Code.UNLOCK_BATCH_MQ: _LOCKS,
    Code.CHECK_CLIENT_CONFIG: {
        "clientId": "client",
        "group": STRANGERS,
        "subscriptionData": _SUBSCRIPTION,
    },
}


def differences(
    ours: dict[tuple[str, int], str], theirs: dict[tuple[str, int], str]
) -> dict[tuple[str, int], tuple[str, str]]:
    """Of the requests that our broker serves: those of name servers and controllers are for them to refuse."""
    return {
        which: (answer, theirs[which])
        for which, answer in ours.items()
        if answer not in (NOT_SERVED, theirs[which])
        and (answer, theirs[which]) != (LET_THROUGH, NOT_SERVED)
    }


def run_answers(broker: GuardedBroker) -> dict[tuple[str, int], str]:
    """Account and code to the refusal, or to LET_THROUGH: what the request itself comes to does not matter.

    Of an account that lacks a topic and a group, RocketMQ names one or the other; so there are two, each with all of
    one kind.
    """
    return asyncio.run(_answers(broker))


async def _answers(broker: GuardedBroker) -> dict[tuple[str, int], str]:
    found = {}
    for account in (GROUPS_ALONE, TOPICS_ALONE):
        remoting = broker.remoting(account)
        answers = await asyncio.gather(*(_answer(remoting, broker, code) for code in BROKER_CODES))
        await remoting.close()
        for code, answer in zip(BROKER_CODES, answers, strict=True):
            found[account.name, code] = answer
    return found


async def _answer(remoting: RemotingClient, broker: GuardedBroker, code: int) -> str:
    body = _BODIES.get(code)
    content = b"" if body is None else json.dumps(body).encode()
    try:
        reply = await remoting.call(
            broker.address, Command(code, dict(_FIELDS), content), _CALL_SECONDS
        )
    except CallTimedOut:
        # RocketMQ does not answer everything that it cannot do.
        return LET_THROUGH
    remark = shown(reply.remark or "")
    if reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return NOT_SERVED
    is_refusal = "AclException" in remark or "has no permission" in remark
    # Otherwise two refusals of an account would pass for two requests that were let through.
    assert "is not found" not in remark, reply
    assert "signature failed" not in remark, reply
    return remark if is_refusal else LET_THROUGH
