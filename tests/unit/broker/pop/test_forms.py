"""Handles, infos, orders and shares of pops."""

from __future__ import annotations

import pytest

from cometmq.broker.clients.pop_sharing import share_for_pop
from cometmq.broker.pop.handle import (
    Handle,
    Popped,
    message_offset_info,
    parse_handle,
    start_offset_info,
)
from cometmq.broker.pop.picking import Source, pick_order
from cometmq.broker.pop.pop_topics import kind_of, real_topic, retry_origin
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.refusal import Refused

# Of Java's client 5.5.0.
SEEN = "0 1794780596423 10000 0 0 b55 3 1"


def test_a_handle_reads_as_java_writes_it() -> None:
    assert parse_handle(SEEN) == Handle(0, 1794780596423, 10000, 0, "0", "b55", 3, 1)
    assert parse_handle(SEEN).render() == SEEN
    assert parse_handle("7 8 9 1 2 b 4").render() == "7 8 9 1 2 b 4"


@pytest.mark.parametrize(
    "text", ["", "1 2 3", "a b c d e f g", SEEN + " 1", "-1 2 3 4 0 b 6", "1" * 2000]
)
def test_no_handle(text: str) -> None:
    with pytest.raises(Refused, match="expected a handle"):
        parse_handle(text)


def test_infos_of_several_queues() -> None:
    popped = [Popped("T", 1, [7]), Popped("%RETRY%g_T", 0, [3, 5]), Popped("%RETRY%g+T", 0, [0])]
    assert start_offset_info(popped) == "0 1 7;1 0 3;2 0 0"
    assert message_offset_info(popped) == "0 1 7;1 0 3,5;2 0 0"


def test_names_lead_back_and_forth() -> None:
    for kind, topic in (("0", "a_b"), ("1", "%RETRY%g_x_a_b"), ("2", "%RETRY%g_x+a_b")):
        assert real_topic("a_b", "g_x", kind) == topic
        assert (kind_of(topic), retry_origin(topic, "g_x")) == (kind, "a_b")


def test_messages_to_be_tried_again_come_first_in_some_pops_and_last_in_others() -> None:
    main, retry = Source("T", 3), [Source("R", 1)]
    assert pick_order(main, retry, -1, 19, 20) == [("R", 0), ("T", 1), ("T", 2), ("T", 0)]
    assert pick_order(main, retry, -1, 20, 20) == [("T", 2), ("T", 0), ("T", 1), ("R", 0)]
    assert pick_order(main, retry, 2, 50, 20) == [("T", 2), ("R", 0)]
    assert pick_order(main, [], 2, 0, 20) == [("T", 2)]


def _queues(count: int, broker: str = "b") -> list[MessageQueue]:
    return [MessageQueue(broker, queue_id, "T") for queue_id in range(count)]


def test_without_a_number_everybody_pops_of_all_brokers() -> None:
    queues = _queues(4, "b") + _queues(2, "a")
    assert share_for_pop("AVG", "c1", queues, ["c1", "c2"], 0) == [
        MessageQueue("a", -1, "T"),
        MessageQueue("b", -1, "T"),
    ]


def test_clients_take_of_those_behind_them() -> None:
    clients = ["c0", "c1", "c2", "c3"]
    shares = [share_for_pop("AVG", one, _queues(4), clients, 1) for one in clients]
    assert [[queue.queue_id for queue in share] for share in shares] == [
        [0, 1],
        [1, 2],
        [2, 3],
        [0, 3],
    ]
    assert share_for_pop("AVG", "who", _queues(4), clients, 1) == []


def test_with_more_clients_than_queues_each_has_one() -> None:
    clients = [f"c{number}" for number in range(5)]
    shares = [share_for_pop("AVG", one, _queues(2), clients, 1) for one in clients]
    assert [[queue.queue_id for queue in share] for share in shares] == [[0], [1], [0], [1], [0]]
