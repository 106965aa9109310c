from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cometmq.client.aio.instance.name_servers import NameServers
from cometmq.client.aio.instance.roles import RoleTable
from cometmq.client.aio.instance.routes import UNUSED_POLLS_MAX, Routes
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import ClientClosed, NoNameServer, NoRoute
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.testing.fake_clock import FakeClock

ADDRESS = "n:9876"


class Setting:
    """Routes with one name server, which may be taken away."""

    def __init__(self, remoting: Any, names: Any) -> None:
        self.remoting = remoting
        self.names = names
        remoting.servers[ADDRESS] = names
        self.clock = FakeClock()
        self.roles = RoleTable()
        self.changes: list[str] = []
        self.routes = Routes(
            NameServers(ClientConfig(name_servers=ADDRESS), remoting.call),
            self.roles,
            self.clock,
            poll_seconds=30.0,
            on_change=self.changes.append,
        )

    def asked(self) -> int:
        return len(self.remoting.sent(RequestCode.GET_ROUTEINFO_BY_TOPIC))


@pytest.fixture
def setting(remoting: Any, names: Any) -> Setting:
    return Setting(remoting, names)


async def test_a_route_is_asked_for_once_and_again_when_it_is_old(
    setting: Setting, make_route: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})

    first = await setting.routes.route("T")
    setting.clock.advance(29)
    assert await setting.routes.route("T") is first
    assert setting.asked() == 1
    setting.clock.advance(1)
    assert await setting.routes.route("T") is first
    assert setting.asked() == 2
    assert await setting.routes.route("T", fresh=True) is first
    assert setting.asked() == 3
    assert setting.changes == ["T"]


async def test_a_doubted_route_is_asked_for_before_its_next_use(
    setting: Setting, make_route: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})

    await setting.routes.route("T")
    setting.names.routes["T"] = make_route({"c": {0: "c:1"}})
    setting.routes.table.doubt("T")
    route = await setting.routes.route("T")
    assert route.broker_datas[0].broker_name == "c"
    assert setting.changes == ["T", "T"]


async def test_many_callers_share_one_request_and_its_failure(setting: Setting) -> None:
    results = await asyncio.gather(
        *(setting.routes.route("T") for _ in range(50)), return_exceptions=True
    )
    assert all(isinstance(result, NoRoute) for result in results)
    assert setting.asked() == 1


async def test_one_caller_giving_up_does_not_end_it_for_the_others(
    setting: Setting, make_route: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})

    go_on = asyncio.Event()

    async def slow(request: Command) -> Command:
        await go_on.wait()
        answer: Command = setting.names(request)
        return answer

    setting.remoting.servers[ADDRESS] = slow
    waiting = [asyncio.create_task(setting.routes.route("T")) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    go_on.set()
    assert (await waiting[1]).broker_datas[0].broker_name == "b"


async def test_the_last_known_route_serves_on_without_name_servers(
    setting: Setting, make_route: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})

    known = await setting.routes.route("T")
    del setting.remoting.servers[ADDRESS]
    setting.clock.advance(1000)
    setting.routes.table.doubt("T")
    assert await setting.routes.route("T") is known
    asked = setting.asked()
    # And nobody has to wait for silent name servers at each use.
    assert await setting.routes.route("T") is known
    assert setting.asked() == asked
    with pytest.raises(NoNameServer):
        await setting.routes.route("U")


async def test_new_topics_are_sent_where_the_template_topic_is(
    setting: Setting, make_route: Any
) -> None:
    with pytest.raises(NoRoute, match="'New'"):
        await setting.routes.publish_route("New")
    setting.names.routes["TBW102"] = make_route({"b": {0: "b:1"}})
    route = await setting.routes.publish_route("New")
    assert route.broker_datas[0].broker_name == "b"


async def test_watched_routes_are_refreshed_in_the_background_alone(
    setting: Setting, make_route: Any, make_producer: Any, make_consumer: Any
) -> None:
    for topic in ("T", "U"):
        setting.names.routes[topic] = make_route({"b": {0: "b:1"}})
    setting.roles.add_consumer(make_consumer("g", "T"))
    setting.roles.add_producer(make_producer("p", "U", "Missing"))

    await setting.routes.refresh()
    setting.routes.is_refreshed = True
    assert sorted(setting.changes) == ["T", "U"]
    setting.clock.advance(1000)
    asked = setting.asked()
    await setting.routes.route("T")
    assert setting.asked() == asked
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}}, queues=8)
    await setting.routes.refresh()
    assert setting.changes[2:] == ["T"]


async def test_a_topic_that_the_name_servers_lost_keeps_its_route(
    setting: Setting, make_route: Any, make_consumer: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})
    setting.roles.add_consumer(make_consumer("g", "T"))

    await setting.routes.refresh()
    setting.names.routes.clear()
    await setting.routes.refresh()
    assert setting.routes.table.writable_address("b") == "b:1"


async def test_silent_name_servers_are_tried_for_one_topic_only(
    setting: Setting, make_route: Any, make_consumer: Any
) -> None:
    topics = [f"T{number}" for number in range(20)]
    for topic in topics:
        setting.names.routes[topic] = make_route({"b": {0: "b:1"}})
    setting.roles.add_consumer(make_consumer("g", *topics))

    await setting.routes.refresh()
    del setting.remoting.servers[ADDRESS]
    asked = setting.asked()
    await setting.routes.refresh()
    assert setting.asked() == asked + 1
    assert all(setting.routes.table.route(topic) for topic in topics)


async def test_brokers_and_topics_that_nobody_uses_are_forgotten(
    setting: Setting, make_route: Any, make_consumer: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})
    setting.names.routes["Once"] = make_route({"c": {0: "c:1"}})
    setting.roles.add_consumer(make_consumer("g", "T"))

    await setting.routes.route("Once")
    setting.clock.advance(30.0 * UNUSED_POLLS_MAX + 1)
    await setting.routes.refresh()
    assert setting.routes.table.brokers() == {"b": {0: "b:1"}}


async def test_who_waits_for_a_route_when_the_client_closes_is_told_so(setting: Setting) -> None:
    async def never(request: Command) -> Command:
        await asyncio.Event().wait()
        raise AssertionError

    setting.remoting.servers[ADDRESS] = never
    waiting = asyncio.create_task(setting.routes.route("T"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await setting.routes.close()
    with pytest.raises(ClientClosed):
        await waiting


async def test_a_known_route_serves_on_when_the_new_one_cannot_be_true(
    setting: Setting, make_route: Any
) -> None:
    setting.names.routes["T"] = make_route({"b": {0: "b:1"}})

    first = await setting.routes.route("T")
    impossible = make_route({"b": {0: "b:1"}})
    impossible.queue_datas[0].write_queue_nums = 2**31 - 1
    setting.names.routes["T"] = impossible
    assert await setting.routes.route("T", fresh=True) is first
    assert setting.asked() == 2
