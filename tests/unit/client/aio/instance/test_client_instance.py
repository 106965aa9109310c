from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.client_config import ClientConfig, Credentials
from cometmq.client.core.broker_order import Place
from cometmq.client.errors import BrokerNotKnown, ClientClosed, GroupInUse, NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.heartbeat import ConsumerList, decode_heartbeat
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import SystemFault
from cometmq.protocol.request_signature import Verifier

NAMES = "n:9876"
HEART_BEAT, UNREGISTER = RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT


def _config(**settings: Any) -> ClientConfig:
    return ClientConfig(**{"name_servers": NAMES, "client_ip": "10.0.0.1", **settings})


@pytest.fixture
def cluster(remoting: Any, names: Any, make_route: Any) -> Any:
    """A name server and a broker that says yes to everything."""
    names.routes["T"] = make_route({"b": {0: "b:1"}})
    remoting.servers[NAMES] = names
    remoting.servers["b:1"] = Command.reply
    return remoting


def test_a_default_name_is_unique_and_a_given_or_stable_one_stays() -> None:
    one, other = (ClientInstance(_config()).client_id for _ in range(2))
    assert one != other
    assert one.startswith("10.0.0.1@")
    assert "#" in one
    assert ClientInstance(_config(instance_name="w")).client_id == "10.0.0.1@w"
    assert ClientInstance(_config(unit_name="u"), has_stable_id=True).client_id == (
        "10.0.0.1@DEFAULT@u"
    )
    own = ClientInstance(_config(client_ip="", instance_name="w")).client_id
    assert own.removesuffix("@w").count(".") == 3


def test_one_instance_for_each_client_id_and_loop() -> None:
    shared = _config(instance_name="shared")

    async def main() -> ClientInstance:
        one, same = ClientInstance.acquire(shared), ClientInstance.acquire(shared)
        assert one is same
        other = ClientInstance.acquire(_config())
        assert other is not one
        with pytest.raises(UsageError, match="other settings"):
            ClientInstance.acquire(_config(instance_name="shared", namespace="x"))
        await one.release()
        assert ClientInstance.acquire(shared) is one
        await one.release()
        await one.release()
        assert ClientInstance.acquire(shared) is not one
        await other.release()
        return one

    first = asyncio.run(main())
    assert asyncio.run(main()) is not first


async def test_a_closed_instance_cannot_be_started() -> None:
    instance = ClientInstance(_config())
    await instance.release()
    await instance.release()
    with pytest.raises(ClientClosed):
        await instance.start()


def test_the_environment_names_the_servers_when_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "e:1")
    assert "name_servers=e:1" in repr(ClientInstance(_config(name_servers="")))
    monkeypatch.delenv("NAMESRV_ADDR")
    with pytest.raises(UsageError, match="no name server given"):
        ClientInstance(_config(name_servers=""))


async def test_every_request_is_signed(cluster: Any) -> None:
    account = Credentials(access_key="me", secret_key="hush", security_token="token")

    instance = ClientInstance(_config(credentials=account), remoting=cluster)
    await instance.route("T")
    await instance.call("b:1", Command(RequestCode.SEND_MESSAGE_V2, body=b"x"), 1.0)
    await instance.oneway("b:1", Command(RequestCode.UPDATE_CONSUMER_OFFSET))
    await instance.release()
    assert len(cluster.calls) == 3
    for _, command in cluster.calls:
        assert command.ext["AccessKey"] == "me"
        assert command.ext["SecurityToken"] == "token"
        assert Verifier("hush").is_signed(command)


async def test_a_role_is_known_to_brokers_at_once_and_until_it_leaves(
    cluster: Any, make_producer: Any, make_consumer: Any
) -> None:
    instance = ClientInstance(_config(), remoting=cluster)
    consumer = make_consumer("g", "T")
    instance.add_consumer(consumer)
    await instance.start()
    await instance.start()
    # Intervals are 30 s: that it does not take so long shows that nobody waits for them.
    await eventually(lambda: bool(cluster.sent(HEART_BEAT, "b:1")))
    assert consumer.rebalances == 1
    producer = make_producer("p")
    instance.add_producer(producer)
    await eventually(lambda: len(cluster.sent(HEART_BEAT, "b:1")) >= 2)
    with pytest.raises(GroupInUse, match="another instance_name"):
        instance.add_producer(make_producer("p"))
    with pytest.raises(GroupInUse):
        instance.add_consumer(make_consumer("g"))
    instance.remove_producer(producer)
    instance.remove_producer(producer)
    await eventually(lambda: len(cluster.sent(UNREGISTER)) == 1)
    await instance.release()
    bodies = [decode_heartbeat(command.body) for command in cluster.sent(HEART_BEAT)]
    assert [each.group_name for each in bodies[-1].producer_data_set] == ["p"]
    assert [command.ext for command in cluster.sent(UNREGISTER)] == [
        {"clientID": bodies[0].client_id, "producerGroup": "p"},
        {"clientID": bodies[0].client_id, "consumerGroup": "g"},
    ]
    assert cluster.is_closed


async def test_a_producer_that_has_sent_nothing_is_known_by_the_template_topic(
    cluster: Any, names: Any, make_route: Any, make_producer: Any
) -> None:
    names.routes["TBW102"] = make_route({"b": {0: "b:1"}})

    instance = ClientInstance(_config(), remoting=cluster)
    await instance.start()
    instance.add_producer(make_producer("p"))
    await eventually(lambda: bool(cluster.sent(HEART_BEAT, "b:1")))
    await instance.release()


async def test_a_broker_that_is_met_while_sending_is_greeted_at_once(
    cluster: Any, names: Any, make_route: Any, make_producer: Any
) -> None:
    instance = ClientInstance(_config(), remoting=cluster)
    await instance.start()
    instance.add_producer(make_producer("p"))
    await instance.route("T")
    await eventually(lambda: bool(cluster.sent(HEART_BEAT, "b:1")))
    await instance.release()


async def test_a_changed_route_makes_its_consumers_rebalance(
    cluster: Any, names: Any, make_route: Any, make_consumer: Any
) -> None:
    names.routes["U"] = make_route({"b": {0: "b:1"}})

    instance = ClientInstance(_config(poll_name_server_millis=5), remoting=cluster)
    concerned, other = make_consumer("g", "T"), make_consumer("h", "U")
    instance.add_consumer(concerned)
    instance.add_consumer(other)
    await instance.start()
    await eventually(lambda: concerned.rebalances == 1 and other.rebalances == 1)
    names.routes["T"] = make_route({"b": {0: "b:1"}}, queues=9)
    await eventually(lambda: concerned.rebalances == 2)
    assert other.rebalances == 1
    await instance.release()


async def test_heartbeats_go_on_at_their_interval_whatever_happens(
    cluster: Any, make_consumer: Any
) -> None:
    instance = ClientInstance(_config(heartbeat_millis=5), remoting=cluster)
    instance.add_consumer(make_consumer("g", "T"))
    await instance.start()
    await eventually(lambda: len(cluster.sent(HEART_BEAT)) > 2)

    def broken(request: Command) -> Command:
        raise RuntimeError("a bug of ours")

    cluster.servers["b:1"] = broken
    seen = len(cluster.sent(HEART_BEAT))
    await eventually(lambda: len(cluster.sent(HEART_BEAT)) > seen + 2)
    cluster.servers["b:1"] = Command.reply
    await instance.release()


@pytest.mark.simulated_time
async def test_a_topic_that_a_heartbeat_makes_is_found_soon(
    cluster: Any, names: Any, make_route: Any, make_consumer: Any
) -> None:
    def broker(request: Command) -> Command:
        names.routes["%RETRY%g"] = make_route({"b": {0: "b:1"}}, queues=1)
        return request.reply()

    cluster.servers["b:1"] = broker

    instance = ClientInstance(_config(), remoting=cluster)
    consumer = make_consumer("g", "T", "%RETRY%g")
    instance.add_consumer(consumer)
    await instance.start()
    await eventually(lambda: instance.known_route("%RETRY%g") is not None)
    assert consumer.rebalances == 2
    await instance.release()


@pytest.mark.simulated_time
async def test_a_broker_is_greeted_again_after_its_connection_was_lost(
    cluster: Any, make_consumer: Any
) -> None:
    class Lost:
        peer = "b:1"

    instance = ClientInstance(_config(), remoting=cluster)
    instance.add_consumer(make_consumer("g", "T"))
    await instance.start()
    await eventually(lambda: len(cluster.sent(HEART_BEAT)) == 1)
    for _ in range(3):
        instance._connection_lost(Lost())  # type: ignore[arg-type]
    await eventually(lambda: len(cluster.sent(HEART_BEAT)) == 2)
    await instance.release()
    instance._connection_lost(Lost())  # type: ignore[arg-type]
    assert len(cluster.sent(HEART_BEAT)) == 2


async def test_a_release_during_the_start_leaves_nothing_running(remoting: Any) -> None:
    config = _config(name_servers="", address_service="127.0.0.1:1")
    instance = ClientInstance(config, remoting=remoting)
    starting = asyncio.create_task(instance.start())
    await asyncio.sleep(0)
    await instance.release()
    await starting
    assert [task for task in asyncio.all_tasks() if "cometmq" in task.get_name()] == []


async def test_where_a_queue_is(cluster: Any, names: Any, make_route: Any) -> None:
    names.routes["T"] = make_route({"b": {0: "b:1", 1: "b:2"}})

    instance = ClientInstance(_config(), remoting=cluster)
    queue = MessageQueue(broker_name="b", queue_id=0, topic="T")
    assert instance.broker_address("b") is None
    assert instance.known_route("T") is None
    assert await instance.find_broker(queue) == "b:1"
    assert instance.known_route("T") is await instance.route("T")
    assert instance.broker_address("b", 1) == "b:2"
    assert instance.read_place("b", 1) == Place("b:2", is_master=False)
    with pytest.raises(BrokerNotKnown, match="'other'"):
        await instance.find_broker(MessageQueue(broker_name="other", queue_id=0, topic="T"))
    with pytest.raises(NoRoute):
        await instance.find_broker(MessageQueue(broker_name="x", queue_id=0, topic="X"))
    await instance.release()


async def test_the_members_of_a_group_are_asked_of_any_broker_that_answers(
    cluster: Any, names: Any, make_route: Any
) -> None:
    names.routes["T"] = make_route({name: {0: f"{name}:1"} for name in "abcdef"})
    names.routes["Empty"] = make_route({})
    members = ConsumerList(consumer_id_list=["x", "y"]).encode()
    cluster.servers["f:1"] = lambda request: request.reply(body=members)
    del cluster.servers["b:1"]

    instance = ClientInstance(_config(), remoting=cluster)
    assert await instance.consumer_ids("T", "g") == ["x", "y"]
    assert cluster.calls[-1][1].ext == {"consumerGroup": "g"}
    cluster.servers["f:1"] = lambda request: request.reply(ResponseCode.SYSTEM_ERROR, "none")
    with pytest.raises(SystemFault):
        await instance.consumer_ids("T", "g")
    with pytest.raises(NoRoute, match="no broker"):
        await instance.consumer_ids("Empty", "g")
    await instance.release()


def test_names_in_a_namespace() -> None:
    instance = ClientInstance(_config(namespace="ns"))
    assert instance.wrap_topic("T") == "ns%T"
    assert instance.unwrap_topic("ns%T") == "T"
    assert instance.wrap_group("g") == "ns%g"
