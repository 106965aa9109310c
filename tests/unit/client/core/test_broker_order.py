"""Who is asked first: the master, unless it has just been silent."""

from __future__ import annotations

from cometmq.client.core.broker_order import SHUN_SECONDS, BrokerOrder, Place, places_of

MASTER, FIRST, SECOND = Place("m:1", True), Place("r:1", False), Place("r:2", False)
PLACES = (MASTER, FIRST, SECOND)


def test_places_of_a_route_have_the_master_first() -> None:
    assert places_of({2: "r:2", 0: "m:1", 1: "r:1"}) == PLACES
    assert places_of({1: "r:1"}) == (FIRST,)
    assert places_of({}) == ()


def test_whoever_was_silent_comes_last_for_a_while() -> None:
    order = BrokerOrder()
    assert order.sort((FIRST, MASTER, SECOND), 0) == [MASTER, FIRST, SECOND]
    order.failed("m:1", 0)
    assert order.sort(PLACES, SHUN_SECONDS - 1) == [FIRST, SECOND, MASTER]
    order.failed("r:1", 1)
    assert order.sort(PLACES, SHUN_SECONDS - 1) == [SECOND, MASTER, FIRST]
    assert order.sort(PLACES, SHUN_SECONDS) == [MASTER, SECOND, FIRST]
    assert order.sort(PLACES, SHUN_SECONDS + 1) == [MASTER, FIRST, SECOND]


def test_an_answer_makes_up_for_it() -> None:
    order = BrokerOrder()
    order.failed("m:1", 0)
    order.answered("m:1")
    assert order.sort(PLACES, 0) == [MASTER, FIRST, SECOND]


def test_nobody_is_remembered_for_ever() -> None:
    order = BrokerOrder()
    for number in range(100):
        order.failed(f"{number}:1", number * SHUN_SECONDS)
    assert len(order._shunned_until) == 1
