"""What a test asks of a broker of any make before it begins: topics and groups."""

from __future__ import annotations

import json

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
    await _ask(remoting, address, request)


async def create_group(remoting: RemotingClient, address: str, group: str) -> None:
    body = json.dumps({"groupName": group, "retryMaxTimes": 5}).encode()
    request = Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    await _ask(remoting, address, request)


async def _ask(remoting: RemotingClient, address: str, request: Command) -> None:
    reply = await remoting.call(address, request, CALL_SECONDS)
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
