from __future__ import annotations

from cometmq.broker.clients import queue_locks
from cometmq.broker.clients.queue_locks import QueueLocks
from cometmq.model.message_queue import MessageQueue
from cometmq.testing.fake_clock import FakeClock

Q0, Q1 = (MessageQueue(broker_name="b", queue_id=number, topic="T") for number in (0, 1))


def test_the_first_to_ask_holds_a_queue_and_may_renew_it() -> None:
    locks = QueueLocks(FakeClock())
    assert locks.lock("g", "one", [Q0, Q1]) == [Q0, Q1]
    assert locks.lock("g", "two", [Q0]) == []
    assert locks.lock("g", "one", [Q0]) == [Q0]
    assert locks.holder("g", Q0) == "one"


def test_groups_do_not_see_each_other() -> None:
    locks = QueueLocks(FakeClock())
    assert locks.lock("g", "one", [Q0]) == [Q0]
    assert locks.lock("h", "two", [Q0]) == [Q0]


def test_a_lock_ends_60_seconds_after_its_last_renewal() -> None:
    clock = FakeClock()
    locks = QueueLocks(clock)
    locks.lock("g", "one", [Q0])
    clock.advance(59)
    locks.lock("g", "one", [Q0])
    clock.advance(60)
    assert locks.lock("g", "two", [Q0]) == []
    clock.advance(0.001)
    assert locks.holder("g", Q0) is None
    assert locks.lock("g", "two", [Q0]) == [Q0]


def test_only_the_holder_can_give_a_lock_up() -> None:
    locks = QueueLocks(FakeClock())
    locks.lock("g", "one", [Q0])
    locks.unlock("g", "two", [Q0])
    assert locks.holder("g", Q0) == "one"
    locks.unlock("g", "one", [Q0])
    assert locks.holder("g", Q0) is None
    assert len(locks) == 0


def test_expire_forgets_what_nobody_renews() -> None:
    clock = FakeClock()
    locks = QueueLocks(clock)
    locks.lock("g", "one", [Q0])
    clock.advance(30)
    locks.lock("g", "one", [Q1])
    clock.advance(31)
    locks.expire()
    assert len(locks) == 1


def test_beyond_the_bound_nothing_is_granted(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(queue_locks, "LOCKS_MAX", 1)
    locks = QueueLocks(FakeClock())
    assert locks.lock("g", "one", [Q0, Q1]) == [Q0]
    assert locks.lock("h", "one", [Q0]) == []
    locks.unlock("g", "one", [Q0])
    assert locks.lock("h", "one", [Q0]) == [Q0]
