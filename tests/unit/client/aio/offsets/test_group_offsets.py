"""Committed positions of a pull consumer: at brokers, some of which refuse, or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.offsets.group_offsets import GroupOffsets
from cometmq.client.client_config import ClientConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import NoPermission

NAMES = "n:9876"
GOOD, BAD = MessageQueue("b", 0, "T"), MessageQueue("c", 0, "T")


def positions(remoting: Any, names: Any, make_route: Any, directory: str | None) -> GroupOffsets:
    remoting.servers = {
        NAMES: names,
        "b:1": lambda request: request.reply(ext={"offset": "5"}),
        "c:1": refuse,
    }
    names.routes["T"] = make_route({"b": {0: "b:1"}, "c": {0: "c:1"}})
    config = ClientConfig(name_servers=NAMES, client_ip="10.0.0.1", instance_name="me")
    instance = ClientInstance(config, remoting=remoting)
    return GroupOffsets(instance, "g", local_directory=directory)


def refuse(request: Command) -> Command:
    if request.code == RequestCode.QUERY_CONSUMER_OFFSET:
        return request.reply(ResponseCode.QUERY_NOT_FOUND, "none")
    return request.reply(ResponseCode.NO_PERMISSION, "no")


async def test_what_a_broker_refuses_is_named_and_the_rest_is_stored(
    remoting: Any, names: Any, make_route: Any
) -> None:
    offsets = positions(remoting, names, make_route, None)
    await offsets.load()
    failures = await offsets.commit({GOOD: 5, BAD: 6})
    assert list(failures) == [BAD]
    assert isinstance(failures[BAD], NoPermission)
    (stored, _) = remoting.sent(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert (stored.ext["consumerGroup"], stored.ext["commitOffset"]) == ("g", "5")
    assert await offsets.read(GOOD) == 5
    assert await offsets.read(BAD) is None


async def test_a_negative_offset_is_refused_before_anything_is_stored(
    remoting: Any, names: Any, make_route: Any
) -> None:
    offsets = positions(remoting, names, make_route, None)
    with pytest.raises(UsageError, match="at least 0"):
        await offsets.commit({GOOD: 5, BAD: -1})
    assert remoting.sent(RequestCode.UPDATE_CONSUMER_OFFSET) == []


async def test_a_broadcasting_client_keeps_them_in_a_file(
    remoting: Any, names: Any, make_route: Any, tmp_path: Path
) -> None:
    offsets = positions(remoting, names, make_route, str(tmp_path))
    await offsets.load()
    assert await offsets.commit({GOOD: 5, BAD: 6}) == {}
    again = positions(remoting, names, make_route, str(tmp_path))
    await again.load()
    assert [await again.read(GOOD), await again.read(BAD)] == [5, 6]
    assert remoting.calls == []
