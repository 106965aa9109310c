from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.send.queue_selector import (
    RoundRobin,
    by_hash,
    by_machine_room,
    by_random,
    hash_index,
    wanted_queue,
)
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message

MESSAGE = Message(topic="T", body=b"x")


def _queues(*brokers: str, each: int = 2) -> list[MessageQueue]:
    return [
        MessageQueue(broker_name=broker, queue_id=queue_id, topic="T")
        for broker in brokers
        for queue_id in range(each)
    ]


def test_round_robin_visits_all_queues_in_turn_from_anywhere() -> None:
    queues = _queues("a", "b")
    for start in (0, 3, 65_535):
        robin = RoundRobin(start)
        visited = [robin.select(queues) for _ in range(8)]
        assert visited[:4] == visited[4:]
        assert set(visited) == set(queues)


def test_round_robin_survives_a_shrunken_topic() -> None:
    robin = RoundRobin(7)
    robin.select(_queues("a", "b", "c"))
    assert robin.select(_queues("a", each=1)).broker_name == "a"


def test_a_retry_avoids_the_failed_broker_while_there_is_another() -> None:
    robin = RoundRobin()
    assert {robin.select(_queues("a", "b"), "a").broker_name for _ in range(9)} == {"b"}
    assert robin.select(_queues("a"), "a").broker_name == "a"


@pytest.mark.parametrize(
    ("key", "count", "index"),
    [
        ("", 4, 0),
        ("a", 4, 97 % 4),
        ("hello", 5, 99162322 % 5),
        # hashCode -862545276
        ("Hello World", 7, 862545276 % 7),
    ],
)
def test_the_hash_is_javas(key: str, count: int, index: int) -> None:
    assert hash_index(key, count) == index


def test_javas_least_integer_goes_to_the_first_queue() -> None:
    # hashCode of this text is -2147483648, whose absolute value Java cannot represent.
    assert hash_index("polygenelubricants", 7) == 0


def test_selectors_choose_among_all_queues() -> None:
    queues = _queues("a", "b")
    assert by_hash("a")(queues, MESSAGE) == queues[97 % 4]
    assert by_random(lambda below: below - 1)(queues, MESSAGE) == queues[3]


def test_a_machine_room_keeps_its_messages() -> None:
    near = by_machine_room({"room1"})
    queues = _queues("room1@a", "room2@b", "c")
    assert [near(queues, MESSAGE).broker_name for _ in range(5)] == ["room1@a"] * 5
    assert {near(queues, MESSAGE).queue_id for _ in range(2)} == {0, 1}
    # Better far than not at all.
    assert near(_queues("room2@b"), MESSAGE).broker_name == "room2@b"


@pytest.mark.parametrize("rooms", ["room1", [], set()])
def test_machine_rooms_must_be_named(rooms: list[str]) -> None:
    with pytest.raises(UsageError, match="machine rooms"):
        by_machine_room(rooms)


def test_the_callers_queue_wins_over_selector_and_key() -> None:
    queues = _queues("a")
    keyed = Message(topic="T", body=b"x", sharding_key="k")
    last = lambda queues, message: queues[-1]  # noqa: E731
    assert wanted_queue("T", queues, keyed, queues[0], last) == queues[0]
    assert wanted_queue("T", queues, keyed, None, last) == queues[-1]
    assert wanted_queue("T", queues, keyed, None, None) == queues[hash_index("k", 2)]
    assert wanted_queue("T", queues, MESSAGE, None, None) is None


def test_a_selector_must_give_a_queue_of_the_topic() -> None:
    queues = _queues("a")
    with pytest.raises(UsageError, match="must give a MessageQueue, not 3"):
        wanted_queue("T", queues, MESSAGE, None, lambda queues, message: 3)  # type: ignore[arg-type,return-value]
    other = MessageQueue(broker_name="a", queue_id=0, topic="Other")
    with pytest.raises(UsageError, match="cannot go to"):
        wanted_queue("T", queues, MESSAGE, other, None)
