"""Sharing queues out: RocketMQ's examples, and nothing lost or given twice."""

from __future__ import annotations

import pytest

from cometmq.model.allocation import STRATEGIES, _ring_position, allocate
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
