"""What a test asks of a broker of any make: topics and groups before it begins, all messages of a queue in the end."""

from __future__ import annotations

import json

from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.admin import CreateTopicHeader
from cometmq.protocol.reply_errors import error_for
from cometmq.remoting.client import RemotingClient

CALL_SECONDS = 15.0


async def create_topic(remoting: RemotingClient, address: str, topic: str, queues: int) -> None:
    header = CreateTopicHeader(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
        topic_sys_flag=0,
    )
    request = Command(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_fields(header))
    await ask_broker(remoting, address, request)


async def create_group(remoting: RemotingClient, address: str, group: str) -> None:
    body = json.dumps({"groupName": group, "retryMaxTimes": 5}).encode()
    request = Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    await ask_broker(remoting, address, request)


async def read_all(remoting: RemotingClient, address: str, topic: str) -> list[Record]:
    """The messages of a topic's first queue, as a group of its own sees them."""
    records: list[Record] = []
    while True:
        ext = {
            "consumerGroup": f"{topic}-reader",
            "topic": topic,
            "queueId": "0",
            "queueOffset": str(len(records)),
            "maxMsgNums": "32",
            "sysFlag": "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subscription": "*",
            "subVersion": "0",
        }
        reply = await remoting.call(address, Command(RequestCode.PULL_MESSAGE, ext), CALL_SECONDS)
        if reply.code != ResponseCode.SUCCESS:
            return records
        records += decode_records(reply.body)


async def ask_broker(remoting: RemotingClient, address: str, request: Command) -> None:
    """Raises BrokerReplyError."""
    reply = await remoting.call(address, request, CALL_SECONDS)
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
