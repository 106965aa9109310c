"""What a page leaves at the reader's broker, and whether the next page would stumble over it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from cometmq.model.names import RETRY_PREFIX, is_system_topic
from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

# Of the broker, not of any page.
_BOOKKEEPING = ("SCHEDULE_TOPIC_XXXX", "rmq_sys_", "DefaultCluster_REPLY_TOPIC")
# Spark tells this group how far it is, and takes nothing from it: two pages run the pipeline `archive`.
_TOLD_ONLY = {"archive-table"}
READ_WRITE = 6


@dataclass(frozen=True)
class BrokerState:
    messages: dict[str, int]
    """By topic."""
    groups: dict[str, frozenset[str]]
    """The topics of each group that has a position."""
    brokers: dict[str, int]
    """The rights that the name server grants on each, by name."""
    settings: str


def broker_state(name_server: str, broker: str) -> BrokerState:
    return asyncio.run(_ask(name_server, broker))


def faults_between(before: BrokerState, after: BrokerState) -> list[str]:
    """What a page did that it should not have done."""
    faults = [
        f"it writes to the topic {topic}, which an earlier page made"
        for topic, count in before.messages.items()
        if after.messages.get(topic, 0) != count
    ]
    faults += [
        f"it consumes as the group {group} of an earlier page"
        for group, topics in after.groups.items()
        if topics != before.groups.get(group, topics) and group not in _TOLD_ONLY
    ]
    if after.brokers != before.brokers:
        faults.append(f"it leaves brokers as {after.brokers}, and found {before.brokers}")
    if after.settings != before.settings:
        faults.append("it leaves other settings")
    return faults


async def _ask(name_server: str, broker: str) -> BrokerState:
    client = RemotingClient()

    async def ask(address: str, code: RequestCode, **fields: str) -> bytes:
        reply = await client.call(address, Command(code, fields), 10.0)
        assert reply.code == 0, reply
        return bytes(reply.body)

    try:
        topics = fastjson.loads(await ask(broker, RequestCode.GET_ALL_TOPIC_CONFIG))
        messages = {}
        for topic in topics["topicConfigTable"]:
            if not is_system_topic(topic) and not topic.startswith(_BOOKKEEPING):
                stats = await ask(broker, RequestCode.GET_TOPIC_STATS_INFO, topic=topic)
                table = fastjson.loads(stats)["offsetTable"]
                messages[topic] = sum(queue["maxOffset"] for queue in table.values())
        offsets = fastjson.loads(await ask(broker, RequestCode.GET_ALL_CONSUMER_OFFSET))
        groups: dict[str, set[str]] = {}
        for key in offsets["offsetTable"]:
            topic, _, group = key.partition("@")
            # The retries of a page's last messages may come while the next page is worked through.
            if not topic.startswith(RETRY_PREFIX):
                groups.setdefault(group, set()).add(topic)
        route = await ask(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TBW102")
        queues = fastjson.loads(route)["queueDatas"]
        settings = (await ask(broker, RequestCode.GET_BROKER_CONFIG)).decode()
    finally:
        await client.close()
    return BrokerState(
        messages=messages,
        groups={group: frozenset(topics) for group, topics in groups.items()},
        brokers={queue["brokerName"]: queue["perm"] & READ_WRITE for queue in queues},
        settings=re.sub(r"^#.*\n", "", settings, flags=re.MULTILINE),
    )
