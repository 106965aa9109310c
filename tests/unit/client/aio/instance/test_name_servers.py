from __future__ import annotations

from typing import Any

import pytest

from cometmq.base.errors import RemoteProtocolError, UsageError
from cometmq.client.aio.instance.name_servers import NameServers
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import NoNameServer, NoRoute
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import SystemBusy


def _as_they_are(addresses: list[str]) -> None:
    pass


def _servers(remoting: Any, text: str = "a:1;b:2", environment: str = "") -> NameServers:
    config = ClientConfig(name_servers=text)
    return NameServers(config, remoting.call, environment=environment, shuffle=_as_they_are)


def test_without_any_address_the_user_is_told_what_to_give(remoting: Any) -> None:
    with pytest.raises(UsageError, match=r"name_servers.*NAMESRV_ADDR.*address_service"):
        _servers(remoting, text="")


def test_the_environment_counts_when_nothing_is_set(remoting: Any) -> None:
    assert _servers(remoting, "", "c:3").addresses == ["c:3"]
    assert _servers(remoting, "a:1", "c:3").addresses == ["a:1"]


async def test_the_next_one_is_asked_and_stays_when_one_fails(
    remoting: Any, names: Any, make_route: Any
) -> None:
    names.routes["T"] = make_route({"b": {0: "b:10"}})
    remoting.servers["b:2"] = names

    servers = _servers(remoting)
    assert await servers.route("T") == names.routes["T"]
    assert await servers.route("T") == names.routes["T"]
    asked = [address for address, _ in remoting.calls]
    assert asked == ["a:1", "b:2", "b:2"]


async def test_when_none_answers_each_was_tried_once(remoting: Any) -> None:
    servers = _servers(remoting)
    with pytest.raises(NoNameServer, match=r"a:1.*b:2.*check the addresses"):
        await servers.route("T")
    assert servers.is_silent
    assert len(remoting.calls) == 2


async def test_an_unknown_topic_and_a_refusal_are_different_errors(
    remoting: Any, names: Any
) -> None:
    servers = _servers(remoting)
    remoting.servers["a:1"] = names
    with pytest.raises(NoRoute, match=r"'T'.*create the topic"):
        await servers.route("T")
    assert not servers.is_silent
    remoting.servers["a:1"] = lambda request: request.reply(ResponseCode.SYSTEM_BUSY, "later")
    with pytest.raises(SystemBusy):
        await servers.route("T")


async def test_a_list_that_has_not_come_yet_is_no_reason_to_crash(remoting: Any) -> None:
    config = ClientConfig(address_service="127.0.0.1:1")

    servers = NameServers(config, remoting.call)
    assert not servers.is_static
    await servers.look_up()
    assert servers.addresses == []
    with pytest.raises(NoNameServer, match=r"127\.0\.0\.1:1 named none"):
        await servers.ask(Command(RequestCode.GET_ROUTEINFO_BY_TOPIC))


async def test_a_route_that_cannot_be_true_is_refused_with_its_reason(
    remoting: Any, names: Any, make_route: Any
) -> None:
    remoting.servers["a:1"] = names
    names.routes["T"] = route = make_route({"b": {0: "b:10"}})
    route.queue_datas[0].read_queue_nums = 2**31 - 1

    with pytest.raises(
        RemoteProtocolError, match=r"name server a:1 told of topic 'T'.* 2147483647 queues"
    ):
        await _servers(remoting).route("T")
