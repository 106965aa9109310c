"""What a client drops and takes when a group's queues are shared out anew, and whom it waits for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.consume.rebalance import (
    Plan,
    find_strategy,
    plan,
    previous_owner,
    share_of,
)
from cometmq.model.message_queue import MessageQueue

QUEUES = [MessageQueue("b", number, "T") for number in range(6)]
AVG = find_strategy("AVG")


def test_only_differences_are_planned() -> None:
    assert plan(QUEUES[:3], QUEUES[2:5]) == Plan(drop=QUEUES[3:5], take=QUEUES[:2])
    assert plan(QUEUES, QUEUES) == Plan(drop=[], take=[])
    assert plan([], QUEUES[:1]) == Plan(drop=QUEUES[:1], take=[])


def test_a_stuck_queue_that_stays_is_started_anew() -> None:
    assert plan(QUEUES[:2], QUEUES[:3], stuck=[QUEUES[0], QUEUES[2]]) == Plan(
        drop=[QUEUES[0], QUEUES[2]], take=[QUEUES[0]]
    )


def test_a_client_that_brokers_do_not_list_gets_nothing() -> None:
    assert share_of(AVG, "x", QUEUES, ["a", "b"]) == []
    assert share_of(AVG, "a", QUEUES, []) == []


def test_order_and_repetition_of_the_lists_do_not_matter() -> None:
    assert share_of(AVG, "a", reversed(QUEUES), ["b", "a", "b"]) == QUEUES[:3]


def test_a_strategy_of_ones_own_may_not_invent_queues() -> None:
    def greedy(
        queues: Sequence[MessageQueue], clients: Sequence[str], me: int
    ) -> list[MessageQueue]:
        return [MessageQueue("elsewhere", 0, "T")]

    with pytest.raises(UsageError, match="elsewhere"):
        share_of(find_strategy(greedy), "a", QUEUES, ["a"])


def test_an_unknown_strategy_is_refused_with_those_known() -> None:
    with pytest.raises(UsageError, match=r"'GUESS'.*AVG_BY_CIRCLE"):
        find_strategy("GUESS")


def test_the_previous_owner_is_found_by_the_previous_members() -> None:
    # Before: a 0-2, b 3-5. With c: a 0-1, b 2-3, c 4-5.
    assert previous_owner(AVG, QUEUES[2], QUEUES, ["b", "a"]) == "a"
    assert previous_owner(AVG, QUEUES[5], QUEUES, ["b", "a"]) == "b"
    assert previous_owner(AVG, QUEUES[5], QUEUES, []) is None
