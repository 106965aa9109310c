from __future__ import annotations

from cometmq.client.core.broker_order import Place
from cometmq.client.core.route_table import RouteTable
from cometmq.model.route import BrokerData, QueueData, TopicRoute


def _route(addresses: dict[str, dict[int, str]], queues: int = 4) -> TopicRoute:
    return TopicRoute(
        queue_datas=[
            QueueData(broker_name=name, read_queue_nums=queues, write_queue_nums=queues)
            for name in addresses
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name=name, broker_addrs=by_id)
            for name, by_id in addresses.items()
        ],
    )


def test_a_route_is_the_same_object_until_something_in_it_changes() -> None:
    table = RouteTable()
    first = _route({"a": {0: "a:1"}, "b": {0: "b:1"}})
    assert table.learn("T", first, 1.0)
    assert not table.learn("T", _route({"b": {0: "b:1"}, "a": {0: "a:1"}}), 2.0)
    assert table.route("T") is first
    assert table.age("T", 5.0) == 3.0
    for other in (
        _route({"a": {0: "a:1"}}),
        _route({"a": {0: "a:1"}}, queues=5),
        _route({"a": {0: "a:2"}}, queues=5),
    ):
        assert table.learn("T", other, 3.0)
        assert table.route("T") is other


def test_a_doubted_route_is_known_but_stale_until_confirmed() -> None:
    table = RouteTable()
    table.doubt("T")
    assert not table.is_stale("T")
    table.learn("T", _route({"a": {0: "a:1"}}), 1.0)
    table.doubt("T")
    assert table.is_stale("T")
    assert table.route("T") is not None
    table.confirm("T", 9.0)
    assert not table.is_stale("T")
    assert table.age("T", 9.0) == 0.0


def test_writes_go_to_the_master_and_to_a_slave_while_none_is_known() -> None:
    table = RouteTable()
    table.learn("T", _route({"a": {0: "m:1", 1: "s:1"}, "b": {2: "s:2", 1: "s:3"}}), 1.0)
    assert table.writable_address("a") == "m:1"
    assert table.writable_address("b") == "s:3"
    assert table.writable_address("c") is None


def test_reads_go_where_the_broker_suggests_and_elsewhere_when_that_one_is_gone() -> None:
    table = RouteTable()
    table.learn("T", _route({"a": {0: "m:1", 2: "s:2"}, "b": {1: "s:1"}}), 1.0)
    master, slave = Place("m:1", is_master=True), Place("s:2", is_master=False)
    assert table.readable_places("a", 0) == [master, slave]
    assert table.readable_places("a", 2) == [slave, master]
    assert table.readable_places("a", 1) == [slave, master]
    assert table.readable_places("a", 7) == [master, slave]
    assert table.readable_places("b", 0) == [Place("s:1", is_master=False)]
    assert table.readable_places("c", 0) == []


def test_a_broker_without_a_master_is_noticed() -> None:
    table = RouteTable()
    table.learn("T", _route({"a": {0: "m:1", 1: "s:1"}}), 1.0)
    table.learn("U", _route({"b": {1: "s:2"}}), 1.0)
    assert table.lacks_master(["T", "U", "unknown"])
    assert not table.lacks_master(["T", "unknown"])


def test_brokers_that_no_route_names_any_more_are_forgotten() -> None:
    table = RouteTable()
    table.learn("T", _route({"a": {0: "a:1", 1: "a:2"}, "b": {0: "b:1"}}), 1.0)
    table.learn("U", _route({"b": {0: "b:1"}}), 1.0)
    table.learn("T", _route({"a": {0: "a:1"}}), 2.0)
    assert table.forget_offline() == []
    assert table.brokers() == {"a": {0: "a:1"}, "b": {0: "b:1"}}
    table.forget_unused({"T"}, 1.5)
    assert table.route("U") is None
    assert table.forget_offline() == ["b"]
    assert table.addresses("b") == {}
