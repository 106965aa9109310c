"""Sharing queues out: RocketMQ's examples, and nothing lost or given twice."""

from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.model.allocation import (
    STRATEGIES,
    _ring_position,
    allocate,
    fixed,
    machine_room,
    machine_room_nearby,
)
from cometmq.model.message_queue import MessageQueue

QUEUES = [MessageQueue("broker-a", n, "TopicTest") for n in range(8)]


def shares(strategy: str, client_count: int, queue_count: int = 8) -> list[list[int]]:
    clients = [f"c{n}" for n in range(client_count)]
    found = []
    for client in clients:
        mine = allocate(strategy, client, reversed(QUEUES[:queue_count]), reversed(clients))
        assert mine is not None
        found.append([queue.queue_id for queue in mine])
    return found


def test_average_gives_neighbours() -> None:
    assert shares("AVG", 3) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert shares("AVG", 6, 4) == [[0], [1], [2], [3], [], []]


def test_circle_deals_like_cards() -> None:
    assert shares("AVG_BY_CIRCLE", 3) == [[0, 3, 6], [1, 4, 7], [2, 5]]


def test_ring_positions_are_those_of_java() -> None:
    assert _ring_position("10.0.0.1@100-0") == 2474991101
    text = "MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=0]"
    assert _ring_position(text) == 1987926524


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("client_count", [1, 2, 3, 7, 8, 13])
def test_every_queue_has_one_owner(strategy: str, client_count: int) -> None:
    owned = [queue_id for share in shares(strategy, client_count) for queue_id in share]
    assert sorted(owned) == list(range(8))


def test_strangers_get_nothing_and_unknown_strategies_no_answer() -> None:
    assert allocate("AVG", "stranger", QUEUES, ["a", "b"]) == []
    assert allocate("GUESS", "a", QUEUES, ["a", "b"]) is None


def test_a_fixed_share_holds_what_the_topic_has_of_it() -> None:
    elsewhere = MessageQueue("broker-z", 0, "TopicTest")
    share = fixed([QUEUES[5], QUEUES[1], elsewhere])
    assert share(QUEUES, ["a", "b"], 0) == share(QUEUES, ["a", "b"], 1) == [QUEUES[1], QUEUES[5]]


def test_a_machine_room_takes_queues_of_its_rooms_only() -> None:
    queues = [MessageQueue(name, n, "T") for name in ("far@b", "near@a", "none") for n in range(5)]
    share = machine_room(["near"])
    assert [queue.queue_id for queue in share(queues, ["a", "b", "c"], 0)] == [0, 3]
    assert [queue.queue_id for queue in share(queues, ["a", "b", "c"], 1)] == [1, 4]
    assert [queue.queue_id for queue in share(queues, ["a", "b", "c"], 2)] == [2]
    assert {queue.broker_name for queue in share(queues, ["a"], 0)} == {"near@a"}


def test_nearby_rooms_share_within_and_leave_nothing_over() -> None:
    queues = [MessageQueue(f"{room}@b", n, "T") for room in ("x", "y", "z") for n in range(4)]
    clients = ["x-1", "x-2", "y-1"]
    share = machine_room_nearby(
        STRATEGIES["AVG"],
        room_of_queue=lambda queue: queue.broker_name.partition("@")[0],
        room_of_client=lambda client: client.partition("-")[0],
    )
    shares = [
        [(queue.broker_name[0], queue.queue_id) for queue in share(queues, clients, me)]
        for me in range(3)
    ]
    assert shares == [
        [("x", 0), ("x", 1), ("z", 0), ("z", 1)],
        [("x", 2), ("x", 3), ("z", 2)],
        [("y", 0), ("y", 1), ("y", 2), ("y", 3), ("z", 3)],
    ]


def test_nearby_rooms_must_have_names() -> None:
    share = machine_room_nearby(
        STRATEGIES["AVG"], room_of_queue=lambda _: "x", room_of_client=lambda _: ""
    )
    with pytest.raises(UsageError, match="no machine room is known for a"):
        share(QUEUES, ["a"], 0)
