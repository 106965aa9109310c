"""Masters that are gone: silence, scans, and a controller that has just started."""

from __future__ import annotations

import pytest
from tests.unit.controller.memory_controller import MemoryController


@pytest.fixture
def pair() -> MemoryController:
    """Master 1 and its in-sync slave 2, epoch 1, set epoch 2."""
    return a_pair(MemoryController())


def a_pair(ours: MemoryController) -> MemoryController:
    ours.join(1)
    ours.elect(1)
    ours.join(2)
    assert ours.alter(1, 1, [1, 2], 1).code == 0
    ours.told()
    return ours


def scan(ours: MemoryController) -> None:
    ours.run(ours.controller.fail_over.scan_brokers)
    ours.run(ours.controller.fail_over.scan_masters)


def pass_time(ours: MemoryController, seconds: int, *beating: int) -> None:
    """Scan every five seconds; brokers send a heartbeat every second."""
    for second in range(1, seconds + 1):
        ours.clock.advance(1)
        for broker in beating:
            ours.beat(broker)
        if second % 5 == 0:
            scan(ours)


def test_a_silent_master_is_replaced(pair: MemoryController) -> None:
    pass_time(pair, 20, 1, 2)
    assert pair.master() == (1, 1, [1, 2], 2)
    pass_time(pair, 15, 2)
    assert pair.master() == (2, 2, [2], 3)


def test_a_broker_says_how_long_it_may_be_silent(pair: MemoryController) -> None:
    pair.beat(1, heartbeatTimeoutMills=60_000)
    pass_time(pair, 30, 2)
    assert pair.master() == (1, 1, [1, 2], 2)
    pass_time(pair, 40, 2)
    assert pair.master()[0] == 2


def test_whoever_is_in_sync_and_returns_first_becomes_master(pair: MemoryController) -> None:
    pair.kill(2)
    pair.kill(1)
    assert pair.master() == (None, 2, [1, 2], 2)
    pass_time(pair, 10)
    assert pair.master() == (None, 2, [1, 2], 2)
    pair.start(2)
    scan(pair)
    assert pair.master() == (2, 3, [2], 3)


def test_a_group_whose_brokers_are_all_gone_is_left_alone(pair: MemoryController) -> None:
    pair.kill(2)
    pair.kill(1)
    pass_time(pair, 60)
    assert pair.master() == (None, 2, [1, 2], 2)


def test_why_there_is_no_master_is_logged_once(
    pair: MemoryController, caplog: pytest.LogCaptureFixture
) -> None:
    pair.join(3)
    pair.kill(2)
    pair.kill(1)
    pass_time(pair, 60, 3)
    lines = [line for line in caplog.messages if line.startswith("no master")]
    assert lines == ["no master name=bk reason=in sync: [1, 2], alive: 3"]


def test_after_a_stop_of_the_controller_itself_heartbeats_are_read_first(
    pair: MemoryController,
) -> None:
    pass_time(pair, 5, 1, 2)
    pair.clock.advance(300)
    pair.run(pair.controller.fail_over.scan_brokers)
    for broker in (1, 2):
        pair.beat(broker)
    scan(pair)
    assert pair.master() == (1, 1, [1, 2], 2)


def test_a_controller_that_has_just_started_does_not_take_unheard_masters_for_dead(
    pair: MemoryController,
) -> None:
    pair.restart()
    reply = pair.start(2)
    assert (reply.ext or {})["masterBrokerId"] == "1"
    assert pair.elect(2).code == 2011
    pass_time(pair, 5, 2)
    assert pair.master() == (1, 1, [1, 2], 2)
    pass_time(pair, 5, 1, 2)
    assert pair.master() == (1, 1, [1, 2], 2)


def test_a_controller_that_has_started_replaces_a_master_that_stays_unheard(
    pair: MemoryController,
) -> None:
    pair.restart()
    pass_time(pair, 15, 2)
    assert pair.master() == (2, 2, [2], 3)


def test_decisions_survive_the_controller(pair: MemoryController) -> None:
    pair.restart()
    assert pair.master() == (1, 1, [1, 2], 2)
    assert (pair.say(1012, 3).ext or {})["nextBrokerId"] == "3"
    for broker in (1, 2):
        pair.beat(broker)
    assert pair.alter(1, 1, [1], 2).code == 0


def test_a_new_group_waits_for_one_of_its_brokers_to_ask() -> None:
    ours = MemoryController()
    ours.join(1)
    pass_time(ours, 20, 1)
    assert ours.master() == (None, 0, [], 0)


def test_only_the_leader_elects_by_itself(pair: MemoryController) -> None:
    leads = False
    pair.controller.fail_over._leads = lambda: leads
    pair.kill(1)
    pass_time(pair, 20, 2)
    assert pair.master() == (1, 1, [1, 2], 2)
    leads = True
    pair.run(pair.controller.fail_over.lead)
    assert pair.master() == (2, 2, [2], 3)


def test_an_old_copy_of_the_decisions_is_logged(
    pair: MemoryController, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        pair.beat(1)
        pair.beat(2, epoch=8)
        scan(pair)
    assert pair.master() == (1, 1, [1, 2], 2)
    (line,) = (line for line in caplog.messages if line.startswith("no master"))
    assert "an old copy: epoch 1, a broker has 8" in line
    reply = pair.elect(2, designated=True)
    assert (reply.code, pair.master()) == (0, (2, 9, [2], 3))
    assert (reply.remark or "").startswith("acknowledged messages may be lost")
