from __future__ import annotations

import pytest

from cometmq.model.route import QueueData
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.namesrv import route_table
from cometmq.namesrv.registration import MinIdChange, Registration
from cometmq.namesrv.route_table import MEMBER_TOPIC_PREFIX, RouteTable
from cometmq.protocol.refusal import Refused

MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.2:10911"


def topics(*names: str, perm: int = 6, sys_flag: int = 0) -> dict[str, TopicConfig]:
    return {
        name: TopicConfig(
            topic_name=name,
            read_queue_nums=8,
            write_queue_nums=4,
            perm=perm,
            topic_sys_flag=sys_flag,
        )
        for name in names
    }


def registration(
    *,
    name: str = "a",
    broker_id: int = 0,
    address: str = MASTER,
    cluster: str = "C",
    config: dict[str, TopicConfig] | None = None,
    counter: int = 1,
    state: int = 0,
    acting_master: bool | None = None,
    filter_servers: list[str] | None = None,
) -> Registration:
    return Registration(
        cluster=cluster,
        broker_name=name,
        broker_id=broker_id,
        address=address,
        ha_address=address.replace("10911", "10912"),
        topics=topics("T", "U") if config is None else config,
        version=DataVersion(counter=counter, state_version=state),
        acting_master=acting_master,
        filter_servers=filter_servers,
    )


def table_with(*registrations: Registration) -> RouteTable:
    table = RouteTable()
    for one in registrations:
        table.register(one, 0.0)
    return table


def addresses(table: RouteTable, topic: str = "T", **options: bool) -> dict[int, str]:
    route = table.route(topic, **options)
    assert route is not None
    (data,) = route.broker_datas
    return data.broker_addrs


def perm(table: RouteTable, topic: str) -> int:
    route = table.route(topic)
    assert route is not None
    return route.queue_datas[0].perm


def test_a_registered_topic_has_a_route() -> None:
    table = table_with(registration())
    route = table.route("T")
    assert route is not None
    assert route.queue_datas == [QueueData(broker_name="a", read_queue_nums=8, write_queue_nums=4)]
    assert [(b.cluster, b.broker_name, b.broker_addrs) for b in route.broker_datas] == [
        ("C", "a", {0: MASTER})
    ]
    assert table.route("unknown") is None


def test_a_slave_learns_its_master_and_brings_no_topics() -> None:
    table = table_with(registration())
    done = table.register(
        registration(broker_id=1, address=SLAVE, config=topics("T", "only-here")), 0.0
    )
    assert (done.master_address, done.ha_address) == (MASTER, "10.0.0.1:10912")
    assert addresses(table) == {0: MASTER, 1: SLAVE}
    assert table.route("only-here") is None


def test_a_slave_without_master_is_told_none() -> None:
    done = RouteTable().register(registration(broker_id=1, address=SLAVE), 0.0)
    assert done.master_address is None


def test_an_address_that_changes_its_id_leaves_the_old_one() -> None:
    table = table_with(registration(), registration(broker_id=1, address=SLAVE))
    table.register(registration(broker_id=0, address=SLAVE), 1.0)
    assert addresses(table) == {0: SLAVE}


def test_a_lower_state_version_does_not_take_over_an_id() -> None:
    table = table_with(registration(state=2))
    table.register(registration(address=SLAVE, state=1), 0.0)
    assert addresses(table) == {0: MASTER}
    assert table.liveness.get("C", SLAVE) is None


def test_one_topic_from_an_unknown_broker_is_refused_and_leaves_no_trace() -> None:
    table = RouteTable()
    with pytest.raises(Refused, match="register broker failed"):
        table.register(registration(config=topics("T")), 0.0)
    assert table.cluster_info() == ({}, {})
    assert table.is_changed("C", MASTER, DataVersion(counter=1))


def test_one_changed_topic_of_a_known_broker_leaves_the_others_alone() -> None:
    table = table_with(registration())
    table.register(registration(config=topics("T", perm=4), counter=2), 0.0)
    assert (perm(table, "T"), perm(table, "U")) == (4, 6)


def test_an_unchanged_version_changes_nothing_but_brings_missing_topics_back() -> None:
    table = table_with(registration())
    table.delete_topic("U")
    table.register(registration(config=topics("T", "U", perm=2)), 0.0)
    assert (perm(table, "T"), perm(table, "U")) == (6, 2)


def test_topics_a_broker_no_longer_has_stay_unless_told_otherwise() -> None:
    table = table_with(registration(config=topics("T", "U", "V")))
    table.register(registration(counter=2), 0.0)
    assert "V" in table.topics()
    table.register(registration(counter=3), 0.0, delete_missing_topics=True)
    assert table.topics() == ["T", "U"]
    table.register(registration(config=topics("T"), counter=4), 0.0, delete_missing_topics=True)
    assert table.topics() == ["T", "U"]


def test_the_last_address_takes_queues_and_cluster_with_it() -> None:
    table = table_with(registration(), registration(broker_id=1, address=SLAVE))
    table.register(registration(name="b", address="10.0.0.3:10911", config=topics("T", "W")), 0.0)
    table.unregister("C", "a", MASTER)
    assert addresses(table, "U") == {1: SLAVE}
    table.unregister("C", "a", SLAVE)
    assert table.topics() == ["T", "W"]
    table.unregister("C", "b", "10.0.0.3:10911")
    assert (table.topics(), table.cluster_info()) == ([], ({}, {}))


def test_unregistering_an_address_that_was_replaced_is_harmless() -> None:
    table = table_with(registration(address=SLAVE), registration())
    table.unregister("C", "a", SLAVE)
    assert addresses(table) == {0: MASTER}


def test_write_permission_is_wiped_and_given_back() -> None:
    table = table_with(registration(config=topics("T", "U", perm=7)))
    assert table.wipe_write_perm("a") == 2
    assert perm(table, "T") == 5
    assert table.add_write_perm("a") == 2
    assert perm(table, "T") == 6
    assert table.wipe_write_perm("unknown") == 0


def test_a_topic_is_deleted_everywhere_or_in_one_cluster() -> None:
    table = table_with(registration(), registration(name="b", cluster="D", address=SLAVE))
    table.delete_topic("T", "D")
    route = table.route("T")
    assert route is not None
    assert [q.broker_name for q in route.queue_datas] == ["a"]
    table.delete_topic("T", "nowhere")
    table.delete_topic("U")
    assert table.topics() == ["T"]


def test_lists_by_cluster_system_and_unit() -> None:
    table = table_with(
        registration(config=topics("both", "unit", sys_flag=1) | topics("sub", sys_flag=2)),
        registration(name="b", cluster="D", address=SLAVE, config=topics("both", "plain")),
    )
    assert table.topics_of_cluster("C") == ["both", "unit", "sub"]
    assert table.topics_of_cluster("D") == ["both", "plain"]
    assert table.topics_of_cluster("E") == []
    assert table.system_topics() == (["C", "a", "D", "b"], MASTER)
    assert table.topics_with_flags(1) == ["both", "unit"]
    assert table.topics_with_flags(2, 1) == ["sub"]
    assert RouteTable().system_topics() == ([], None)


def test_a_topic_put_by_hand_needs_registered_brokers() -> None:
    table = table_with(registration())
    queue = QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=1)
    table.put_topic("new", [queue])
    assert addresses(table, "new") == {0: MASTER}
    foreign = QueueData(broker_name="x", read_queue_nums=1, write_queue_nums=1)
    with pytest.raises(Refused, match="x is not registered"):
        table.put_topic("newer", [queue, foreign])
    assert table.route("newer") is None


def test_filter_servers_are_shown_until_an_empty_list_comes() -> None:
    table = table_with(registration(filter_servers=["10.0.0.1:9000"]))
    route = table.route("T")
    assert route is not None
    assert route.filter_server_table == {MASTER: ["10.0.0.1:9000"]}
    table.register(registration(filter_servers=[]), 0.0)
    route = table.route("T")
    assert route is not None
    assert route.filter_server_table == {}


def test_a_slave_stands_in_for_its_lost_master_when_both_sides_allow_it() -> None:
    table = table_with(
        registration(acting_master=True),
        registration(broker_id=1, address=SLAVE, acting_master=True),
    )
    table.unregister("C", "a", MASTER)
    assert perm(table, "T") == 4
    assert addresses(table) == {1: SLAVE}
    assert addresses(table, acting_master=True) == {0: SLAVE}
    assert table.member_addresses("C", "a") == {1: SLAVE}
    table.register(registration(broker_id=1, address=SLAVE, acting_master=True, counter=2), 0.0)
    assert perm(table, "T") == 4


def test_the_master_takes_its_place_again() -> None:
    table = table_with(
        registration(acting_master=True),
        registration(broker_id=1, address=SLAVE, acting_master=True),
    )
    table.unregister("C", "a", MASTER)
    table.register(registration(acting_master=True), 1.0)
    assert perm(table, "T") == 6
    assert addresses(table, acting_master=True) == {0: MASTER, 1: SLAVE}


def test_a_slave_alone_is_a_route_for_readers_after_a_restart_of_the_name_server() -> None:
    acting = registration(broker_id=1, address=SLAVE, acting_master=True)
    table = table_with(acting)
    assert (perm(table, "T"), addresses(table, acting_master=True)) == (4, {0: SLAVE})
    # One that does not act is listed, too, but nobody can take it for a master.
    table = table_with(registration(broker_id=1, address=SLAVE, acting_master=False))
    assert addresses(table, acting_master=True) == {1: SLAVE}
    # A slave of RocketMQ 4 says nothing of this, and its topics do not count.
    assert table_with(registration(broker_id=1, address=SLAVE)).route("T") is None


def test_the_next_slave_stands_in_when_the_first_is_lost_too() -> None:
    third = "10.0.0.3:10911"
    table = table_with(
        *(
            registration(broker_id=broker_id, address=address, acting_master=True)
            for broker_id, address in ((0, MASTER), (1, SLAVE), (2, third))
        )
    )
    table.unregister("C", "a", MASTER)
    assert addresses(table, acting_master=True) == {0: SLAVE, 2: third}
    change = table.unregister("C", "a", SLAVE)
    assert change == MinIdChange("a", 2, third, SLAVE, None, [third])
    assert addresses(table, acting_master=True) == {0: third}


def test_brokers_that_ask_for_each_other_are_told_their_real_ids() -> None:
    member_topic = MEMBER_TOPIC_PREFIX + "a"
    table = table_with(
        registration(
            broker_id=1, address=SLAVE, acting_master=True, config=topics("T", member_topic)
        )
    )
    assert addresses(table, member_topic, acting_master=True) == {1: SLAVE}


def test_a_change_of_the_lowest_id_is_reported() -> None:
    table = table_with(registration(broker_id=2, address=SLAVE))
    done = table.register(registration(), 0.0)
    assert done.min_id_change == MinIdChange("a", 0, MASTER, None, "10.0.0.1:10912", [SLAVE])
    assert table.unregister("C", "a", MASTER) == MinIdChange("a", 2, SLAVE, MASTER, None, [SLAVE])


def test_versions_tell_whether_a_broker_must_register_again() -> None:
    table = table_with(registration(counter=3))
    assert not table.is_changed("C", MASTER, DataVersion(counter=3))
    assert table.is_changed("C", MASTER, DataVersion(counter=4))
    assert table.is_changed("other", MASTER, DataVersion(counter=3))


@pytest.mark.parametrize("name", ["", "x" * 513, "line\nbreak", "nul\0"])
def test_impossible_names_are_refused(name: str) -> None:
    table = RouteTable()
    for bad in (registration(name=name), registration(config=topics("T", name))):
        with pytest.raises(Refused, match="printable"):
            table.register(bad, 0.0)
    assert table.cluster_info() == ({}, {})


def test_the_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_table, "TOPICS_MAX", 3)
    monkeypatch.setattr(route_table, "BROKERS_MAX", 1)
    table = table_with(registration())
    with pytest.raises(Refused, match="over 1 brokers"):
        table.register(registration(broker_id=1, address=SLAVE), 0.0)
    with pytest.raises(Refused, match="over 3 topics"):
        table.register(registration(config=topics("V", "W"), counter=2), 0.0)
    table.register(registration(config=topics("T", "U", "V"), counter=2), 0.0)
    assert table.topics() == ["T", "U", "V"]


@pytest.mark.parametrize("count", [2**31 - 1, 65_537, -1])
def test_a_topic_of_impossible_size_is_left_out_and_the_others_are_taken(count: int) -> None:
    huge = TopicConfig(topic_name="huge", read_queue_nums=count, write_queue_nums=1)
    table = RouteTable()
    done = table.register(registration(config=topics("T", "U") | {"huge": huge}), 0.0)
    assert done.left_out == ["huge"]
    assert table.topics() == ["T", "U"]
    with pytest.raises(Refused, match=f"topic huge not taken: .*65536, not {count}"):
        table.register(registration(config={"huge": huge}, counter=2), 0.0)
    huge.read_queue_nums = 65_536
    table.register(registration(config={"huge": huge}, counter=3), 0.0)
    assert "huge" in table.topics()


def test_a_topic_put_by_hand_has_as_many_queues_as_one_that_is_registered() -> None:
    table = table_with(registration())
    with pytest.raises(Refused, match="more than 8 queues on broker a"):
        table.put_topic(
            "new",
            [QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=9)],
            queues_max=8,
        )
    assert table.route("new") is None
