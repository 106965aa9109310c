"""Sharing queues out among the consumers that a fake broker knows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.eventually import eventually, turns

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.pull.queue_balance import QueueBalance
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.consume.rebalance import find_strategy
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.heartbeat import ConsumerList
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

NAMES = "n:9876"
ME = "10.0.0.1@me"
CONFIG = ClientConfig(name_servers=NAMES, client_ip="10.0.0.1", instance_name="me")


class Group:
    """A broker that knows these consumers of the group."""

    def __init__(self, *client_ids: str) -> None:
        self.client_ids = list(client_ids)

    def __call__(self, request: Command) -> Command:
        if request.code != RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return request.reply()
        assert request.ext == {"consumerGroup": "g"}
        if not self.client_ids:
            return request.reply(ResponseCode.SYSTEM_ERROR, "no consumer for this group")
        return request.reply(body=ConsumerList(consumer_id_list=self.client_ids).encode())


class Shares:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, list[int]]] = []

    async def __call__(
        self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]
    ) -> None:
        self.seen.append((topic, len(queues), [queue.queue_id for queue in mine]))


def balance(remoting: Any, shares: Shares, *, strategy: str | None = "AVG") -> QueueBalance:
    return QueueBalance(
        ClientInstance(CONFIG, remoting=remoting),
        "g",
        strategy=find_strategy(strategy) if strategy else None,
        interval_seconds=60.0,
        on_share=shares,
    )


async def test_a_share_is_told_when_it_changes(remoting: Any, names: Any, make_route: Any) -> None:
    group = Group(ME)
    remoting.servers = {NAMES: names, "b:1": group}
    names.routes["T"] = make_route({"b": {0: "b:1"}})

    shares = Shares()
    shared = balance(remoting, shares)
    shared.add("T")
    shared.add("T")
    assert shared.topics == ["T"]
    shared.start()
    await eventually(lambda: shares.seen)
    assert shares.seen == [("T", 4, [0, 1, 2, 3])]
    group.client_ids.append("10.0.0.1@other")
    shared.soon()
    await eventually(lambda: len(shares.seen) == 2)
    assert shares.seen[1] == ("T", 4, [0, 1])
    asked = len(remoting.sent(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
    shared.soon()
    await eventually(
        lambda: len(remoting.sent(RequestCode.GET_CONSUMER_LIST_BY_GROUP)) == asked + 1
    )
    shared.remove("T")
    group.client_ids.pop()
    shared.soon()
    await turns()
    assert len(shares.seen) == 2
    await shared.stop()


@pytest.mark.simulated_time
async def test_what_cannot_be_shared_out_yet_is_tried_again_soon(
    remoting: Any, names: Any, make_route: Any
) -> None:
    group = Group()
    remoting.servers = {NAMES: names, "b:1": group}
    names.routes["T"] = make_route({"b": {0: "b:1"}})

    shares = Shares()
    shared = balance(remoting, shares)
    shared.add("T")
    shared.add("unknown")
    shared.start()
    await eventually(lambda: remoting.sent(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
    assert shares.seen == []
    group.client_ids.append(ME)
    # The next round is a second away, not a minute.
    await eventually(lambda: shares.seen)
    assert shares.seen == [("T", 4, [0, 1, 2, 3])]
    await shared.stop()


async def test_a_client_that_the_broker_does_not_list_holds_nothing(
    remoting: Any, names: Any, make_route: Any
) -> None:
    remoting.servers = {NAMES: names, "b:1": Group("10.0.0.1@other")}
    names.routes["T"] = make_route({"b": {0: "b:1"}})

    queues, mine = await balance(remoting, Shares()).share("T")
    assert (len(queues), mine) == (4, [])


async def test_a_broadcasting_consumer_holds_all_and_asks_nobody(
    remoting: Any, names: Any, make_route: Any
) -> None:
    remoting.servers = {NAMES: names}
    names.routes["T"] = make_route({"b": {0: "b:1"}, "c": {0: "c:1"}}, queues=2)

    queues, mine = await balance(remoting, Shares(), strategy=None).share("T")
    assert queues == mine
    assert len(mine) == 4
