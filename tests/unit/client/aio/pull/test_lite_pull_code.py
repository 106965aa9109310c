"""Lite pulls have a request code of their own, but only brokers since RocketMQ 5 know it."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.pull.pull_call import PullCalls
from cometmq.client.client_config import ClientConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import build_subscription
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

NAMES = "n:9876"
EMPTY = {"suggestWhichBrokerId": "0", "nextBeginOffset": "7", "minOffset": "0", "maxOffset": "7"}


@pytest.mark.parametrize(
    ("version", "is_lite", "code", "flag"),
    [
        (409, True, RequestCode.PULL_MESSAGE, "22"),
        (413, True, RequestCode.LITE_PULL_MESSAGE, "22"),
        (413, False, RequestCode.PULL_MESSAGE, "6"),
    ],
)
async def test_the_code_of_a_pull(
    remoting: Any,
    names: Any,
    make_route: Any,
    make_consumer: Any,
    version: int,
    is_lite: bool,
    code: RequestCode,
    flag: str,
) -> None:
    def broker(request: Command) -> Command:
        if request.code == RequestCode.HEART_BEAT:
            reply = request.reply()
            reply.version = version
            return reply
        return request.reply(ResponseCode.PULL_NOT_FOUND, ext=dict(EMPTY))

    remoting.servers = {NAMES: names, "b:1": broker}
    names.routes["T"] = make_route({"b": {0: "b:1"}})

    instance = ClientInstance(ClientConfig(name_servers=NAMES), remoting=remoting)
    instance.add_consumer(make_consumer("g", "T"))
    await instance.route("T")
    await instance.heartbeat()
    result = await PullCalls(instance, "g").pull(
        MessageQueue("b", 0, "T"),
        7,
        build_subscription("T", "*"),
        wait_seconds=20,
        is_lite=is_lite,
    )
    assert (result.messages, result.next_offset) == ([], 7)
    (asked,) = remoting.sent(code)
    assert asked.ext["sysFlag"] == flag
