from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import pytest

from cometmq.broker.config.config_slices import PollingConfig
from cometmq.broker.pull.long_polling import TICK_SECONDS, LongPolling, ParkedPull
from cometmq.broker.pull.parked_request import PORTION
from cometmq.protocol.command import Command
from cometmq.remoting.bounds.reached import Reached
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_loop import FakeLoop

MakePeer = Callable[..., Any]


class Polling:
    def __init__(self, capacity: int = 10) -> None:
        self.clock = FakeClock()
        self.loop = FakeLoop(self.clock)
        self.run: list[ParkedPull] = []
        self.long_polling = LongPolling(
            self.run.append,
            clock=self.clock,
            loop=self.loop,
            limits=PollingConfig(parked_max=capacity),
            reached=Reached(),
        )

    def park(
        self,
        peer: Any,
        *,
        queue_id: int = 0,
        offset: int = 5,
        tags: Container[int] | None = None,
        seconds: float = 15,
    ) -> ParkedPull | None:
        pull = ParkedPull(
            peer, Command(code=11), topic="T", queue_id=queue_id, offset=offset, tags=tags
        )
        return pull if self.long_polling.park(pull, seconds) else None

    def arrive(self, max_offset: int, *, queue_id: int = 0, tags_code: int = 0) -> None:
        self.long_polling.arrived("T", queue_id, max_offset, tags_code, 0, b"")

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_SECONDS)):
            self.clock.advance(TICK_SECONDS)
            self.loop.fire()


@pytest.fixture
def polling() -> Polling:
    return Polling()


def test_an_append_wakes_the_pulls_of_its_queue_in_the_same_turn(
    polling: Polling, make_peer: MakePeer
) -> None:
    peer = make_peer()
    first, other = polling.park(peer), polling.park(peer, queue_id=1)
    polling.arrive(6)
    assert polling.run == []
    polling.loop.turn()
    assert polling.run == [first]
    assert len(polling.long_polling) == 1
    polling.arrive(6, queue_id=1)
    polling.loop.turn()
    assert polling.run == [first, other]


def test_a_stop_answers_every_pull(polling: Polling, make_peer: MakePeer) -> None:
    pulls = [polling.park(make_peer(), queue_id=number) for number in (0, 0, 1)]
    polling.long_polling.answer_all()
    assert polling.run == pulls
    assert len(polling.long_polling) == 0


def test_messages_of_one_chunk_wake_a_pull_once(polling: Polling, make_peer: MakePeer) -> None:
    polling.park(make_peer())
    for max_offset in (6, 7, 8):
        polling.arrive(max_offset)
    assert len(polling.loop.soon) == 1
    polling.loop.turn()
    assert len(polling.run) == 1


def test_an_offset_not_yet_reached_goes_on_waiting(polling: Polling, make_peer: MakePeer) -> None:
    polling.park(make_peer(), offset=5)
    polling.arrive(5)
    polling.loop.turn()
    assert polling.run == []


def test_a_tag_nobody_asked_for_wakes_nobody(polling: Polling, make_peer: MakePeer) -> None:
    pull = polling.park(make_peer(), tags=frozenset({65}))
    polling.arrive(6, tags_code=66)
    polling.loop.turn()
    assert polling.run == []
    polling.arrive(7, tags_code=65)
    polling.loop.turn()
    assert polling.run == [pull]


def test_a_pull_is_answered_when_its_time_is_over_and_not_before(
    polling: Polling, make_peer: MakePeer
) -> None:
    pull = polling.park(make_peer(), seconds=2)
    polling.pass_time(2)
    assert polling.run == []
    polling.pass_time(TICK_SECONDS)
    assert polling.run == [pull]
    assert len(polling.long_polling) == 0
    polling.pass_time(1)
    assert polling.loop.waiting == 0, "an idle broker sets no timers"


def test_a_pull_of_no_time_at_all_is_answered_at_the_next_tick(
    polling: Polling, make_peer: MakePeer
) -> None:
    pull = polling.park(make_peer(), seconds=0)
    polling.pass_time(TICK_SECONDS)
    assert polling.run == [pull]


def test_a_closed_connection_takes_its_pulls_with_it(polling: Polling, make_peer: MakePeer) -> None:
    gone, stays = make_peer(1), make_peer(2)
    polling.park(gone)
    polling.park(gone, queue_id=1)
    kept = polling.park(stays)
    polling.long_polling.forget(gone)
    polling.long_polling.forget(gone)
    assert len(polling.long_polling) == 1
    polling.arrive(6)
    polling.loop.turn()
    assert polling.run == [kept]


def test_a_pull_whose_connection_closes_while_it_is_woken_is_dropped(
    polling: Polling, make_peer: MakePeer
) -> None:
    peer = make_peer()
    polling.park(peer)
    polling.arrive(6)
    peer.is_closed = True
    polling.loop.turn()
    assert polling.run == []


def test_without_room_a_pull_is_not_parked(make_peer: MakePeer) -> None:
    polling = Polling(capacity=1)
    assert polling.park(make_peer()) is not None
    assert polling.park(make_peer()) is None
    polling.arrive(6)
    polling.loop.turn()
    assert polling.park(make_peer()) is not None


def test_pulls_of_a_deleted_topic_are_answered(polling: Polling, make_peer: MakePeer) -> None:
    pull = polling.park(make_peer())
    polling.long_polling.forget_topic("other")
    assert polling.run == []
    polling.long_polling.forget_topic("T")
    assert polling.run == [pull]
    assert len(polling.long_polling) == 0


class TestVeryMany:
    COUNT = 4 * PORTION + 1

    @pytest.fixture
    def polling(self) -> Polling:
        return Polling(capacity=self.COUNT)

    def turns(self, polling: Polling) -> list[int]:
        """How many pulls each turn of the loop runs, to the last."""
        counts = []
        while polling.loop.soon:
            before = len(polling.run)
            polling.loop.turn()
            counts.append(len(polling.run) - before)
        return counts

    def test_woken_ones_run_in_portions(self, polling: Polling, make_peer: MakePeer) -> None:
        pulls = [polling.park(make_peer()) for _ in range(self.COUNT)]
        polling.arrive(6)
        assert self.turns(polling) == [PORTION] * 4 + [1]
        assert polling.run == pulls
        assert len(polling.long_polling) == 0

    def test_those_out_of_time_run_in_portions(self, polling: Polling, make_peer: MakePeer) -> None:
        pulls = [polling.park(make_peer(), seconds=2) for _ in range(self.COUNT)]
        polling.pass_time(2 + TICK_SECONDS)
        assert len(polling.run) == PORTION
        assert self.turns(polling) == [PORTION] * 3 + [1]
        assert polling.run == pulls

    def test_each_runs_once_though_woken_and_out_of_time(
        self, polling: Polling, make_peer: MakePeer
    ) -> None:
        pulls = [polling.park(make_peer(), seconds=2) for _ in range(self.COUNT)]
        polling.arrive(6)
        polling.loop.turn()
        polling.pass_time(2 + TICK_SECONDS)
        polling.arrive(7)
        self.turns(polling)
        assert polling.run == pulls
        assert polling.long_polling.park(
            ParkedPull(make_peer(), Command(11), topic="T", queue_id=0, offset=9, tags=None), 15
        )
        assert len(polling.long_polling) == 1

    def test_those_of_a_connection_that_closes_meanwhile_are_dropped(
        self, polling: Polling, make_peer: MakePeer
    ) -> None:
        leaving, staying = make_peer(1), make_peer(2)
        for number in range(self.COUNT):
            polling.park(staying if number % 2 else leaving)
        polling.arrive(6)
        polling.loop.turn()
        leaving.is_closed = True
        polling.long_polling.forget(leaving)
        self.turns(polling)
        assert len(polling.run) == self.COUNT // 2 + PORTION // 2
        assert len(polling.long_polling) == 0

    def test_a_stop_answers_those_that_are_ready(
        self, polling: Polling, make_peer: MakePeer
    ) -> None:
        pulls = [polling.park(make_peer()) for _ in range(self.COUNT)]
        polling.arrive(6)
        polling.long_polling.answer_all()
        assert polling.run == pulls

    def test_some_tags_of_many(self, polling: Polling, make_peer: MakePeer) -> None:
        for number in range(100):
            polling.park(make_peer(), tags=frozenset({number % 2}))
        polling.arrive(6, tags_code=1)
        self.turns(polling)
        assert [pull.tags for pull in polling.run] == [frozenset({1})] * 50
        polling.arrive(7, tags_code=0)
        self.turns(polling)
        assert len(polling.run) == 100


def test_requests_of_parked_pulls_take_a_bounded_memory(
    polling: Polling, make_peer: MakePeer
) -> None:
    def park(size: int) -> bool:
        command = Command(11, {"subscription": "x" * (size // 2)}, bytes(size // 2))
        pull = ParkedPull(make_peer(), command, topic="T", queue_id=0, offset=5, tags=None)
        return polling.long_polling.park(pull, 15)

    assert park(PollingConfig().parked_bytes_max - 1000)
    assert not park(2000)
    assert park(1000)
    polling.arrive(6)
    polling.loop.turn()
    assert park(PollingConfig().parked_bytes_max)
