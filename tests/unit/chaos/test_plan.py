"""The schedule follows from the seed alone; the promises of a mode from the faults that happened."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.chaos.plan.faults import (
    GENTLE,
    NEEDS_CONTROLLERS,
    NEEDS_ETCD,
    PAUSES,
    TOGETHER,
    WHAT_HAPPENS,
    WITHOUT_ELECTION,
    Fault,
)
from tests.chaos.plan.modes import MEANING, MODES, OF_ELECTIONS, Count
from tests.chaos.plan.profiles import CONTROLLED, PROFILES, faults_named, trials_of, workloads_named
from tests.chaos.plan.schedule import (
    LEASE_SECONDS,
    begin_of,
    broker_names,
    controller_names,
    etcd_names,
    plan,
)


def test_a_seed_is_a_schedule() -> None:
    mode = MODES["2m-2s-sync"]
    first = plan(7, 600, mode, Fault, pause_seconds=22)
    assert first == plan(7, 600, mode, reversed(list(Fault)), pause_seconds=22)
    assert first != plan(8, 600, mode, Fault, pause_seconds=22)


def test_a_long_run_has_every_fault_that_fits_one_after_the_other() -> None:
    for mode in MODES.values():
        planned = plan(1, 1200, mode, Fault, pause_seconds=22)
        assert {fault.kind for fault in planned} == {kind for kind in Fault if mode.fits(kind)}
        for before, after in pairwise(planned):
            assert before.at + before.seconds < after.at
        assert planned[-1].at + planned[-1].seconds <= 1200


def test_a_replica_is_added_before_it_is_removed() -> None:
    wanted = (Fault.REMOVE_REPLICA, Fault.ADD_REPLICA)
    for seed in range(20):
        planned = plan(seed, 100, MODES["async-master"], wanted, pause_seconds=1)
        assert [fault.kind for fault in planned[:2]] == [Fault.ADD_REPLICA, Fault.REMOVE_REPLICA]


def test_a_run_that_is_too_short_has_no_fault() -> None:
    assert plan(1, 3, MODES["async-flush"], Fault, pause_seconds=1) == []


@pytest.mark.parametrize("kind", [Fault.FAIL_OVER, Fault.DISK_LOST])
def test_the_loss_of_a_master_hits_a_group_whoever_leads_it(kind: Fault) -> None:
    planned = plan(1, 600, MODES["2m-2s-sync"], [kind], pause_seconds=1)
    assert {fault.target for fault in planned} == {"b1", "b2"}


def test_a_plan_can_be_bound_by_number() -> None:
    mode = MODES["async-flush"]
    planned = plan(1, 10, mode, [Fault.KILL], pause_seconds=1, count=50)
    assert len(planned) == 50
    assert planned[0] == plan(1, 10, mode, [Fault.KILL], pause_seconds=1)[0]
    assert plan(1, 10, mode, [], pause_seconds=1, count=50) == []


def test_clients_get_something_done_between_faults_of_a_late_plan() -> None:
    second = plan(1, 60, MODES["async-flush"], [Fault.KILL], pause_seconds=1)[1]
    assert begin_of(second, second.at - 2) == second.at
    assert begin_of(second, second.at + 5) == second.at + 6


def test_names_of_brokers() -> None:
    assert broker_names(MODES["2m-2s-sync"]) == ["b1", "b1s1", "b2", "b2s1"]
    assert controller_names(MODES["2m-2s-sync"]) == []
    assert controller_names(MODES["controllers-etcd"]) == ["c1", "c2", "c3"]
    assert etcd_names(MODES["controllers-etcd"]) == ["e1", "e2", "e3"]


def test_faults_of_controllers_and_etcd_need_them() -> None:
    assert not any(MODES["sync-master"].fits(kind) for kind in NEEDS_CONTROLLERS)
    assert not any(MODES["controller"].fits(kind) for kind in NEEDS_ETCD)
    assert all(MODES["controller"].fits(kind) for kind in NEEDS_CONTROLLERS - NEEDS_ETCD)
    assert all(MODES["controllers-etcd"].fits(kind) for kind in Fault)


def test_each_fault_of_a_controller_hits_a_host_that_can_have_it() -> None:
    mode = MODES["controllers-etcd"]
    targets = {
        Fault.MASTER_KILL: {"b1"},
        Fault.CONTROLLER_KILL: {"c1", "c2", "c3"},
        Fault.CUT_CONTROLLER_ETCD: {"c1", "c2", "c3"},
        Fault.ETCD_PAUSE: {"e1", "e2", "e3"},
        Fault.ETCD_GONE: {"etcd"},
        Fault.CLOCK: {"b1", "b1s1", "b1s2", "c1", "c2", "c3"},
    }
    for kind, expected in targets.items():
        planned = plan(1, 0, mode, [kind], pause_seconds=1, count=60)
        assert {fault.target for fault in planned} == expected


def test_two_failures_at_once_are_one_fault_with_parts() -> None:
    mode = MODES["controllers-etcd"]
    for kind, kinds in TOGETHER.items():
        [fault] = plan(1, 0, mode, [kind], pause_seconds=1, count=1)
        assert tuple(part.kind for part in fault.parts) == kinds
        assert fault.seconds == max(part.seconds for part in fault.parts)
        assert all(part.target in fault.target for part in fault.parts)


def test_a_pause_outlasts_a_lease_where_there_is_one() -> None:
    for kind in PAUSES:
        [fault] = plan(1, 0, MODES["controllers-etcd"], [kind], pause_seconds=1, count=1)
        assert fault.seconds > LEASE_SECONDS
    [fault] = plan(1, 0, MODES["sync-master"], [Fault.PAUSE], pause_seconds=1, count=1)
    assert fault.seconds < 2


@pytest.mark.parametrize(
    ("mode", "fault", "is_promised"),
    [
        ("async-flush", Fault.KILL, True),
        ("async-flush", Fault.POWER_LOSS, False),
        ("sync-flush", Fault.POWER_LOSS, True),
        ("async-master", Fault.FAIL_OVER, False),
        ("sync-master", Fault.FAIL_OVER, True),
        ("sync-master", Fault.POWER_LOSS, False),
        ("async-master-sync-flush", Fault.POWER_LOSS, True),
        ("async-master-sync-flush", Fault.FAIL_OVER, False),
        ("sync-master-sync-flush", Fault.POWER_LOSS, True),
        ("sync-master-sync-flush", Fault.FAIL_OVER, True),
        ("sync-flush", Fault.DISK_LOST, False),
        ("async-master-sync-flush", Fault.DISK_LOST, False),
        ("sync-master", Fault.DISK_LOST, True),
        ("sync-master-sync-flush", Fault.DISK_LOST, True),
        ("controller", Fault.POWER_LOSS, True),
        ("controller", Fault.DISK_LOST, True),
        ("controller", Fault.MASTER_AND_REPLICA, True),
        ("controllers-etcd", Fault.ETCD_GONE, True),
        ("controllers-etcd", Fault.MASTER_AND_ETCD, True),
    ],
)
def test_nothing_is_lost_by_a_mode_that_survives(
    mode: str, fault: Fault, is_promised: bool
) -> None:
    assert (Count.LOST in MODES[mode].promised([Fault.CUT, fault])) is is_promised
    assert (MODES[mode].may_lose(fault) == "") is is_promised
    assert Count.ALTERED in MODES[mode].promised(Fault)


def test_a_disk_that_is_lost_takes_offsets_and_order_with_it_but_makes_nothing_up() -> None:
    promised = MODES["async-flush"].promised([Fault.DISK_LOST])
    assert promised == {
        Count.ALTERED,
        Count.PHANTOM,
        Count.DIVERGED,
        Count.EARLY,
        Count.UNEXPECTED,
    }


def test_what_a_mode_may_lose_in_words() -> None:
    assert MODES["sync-flush"].may_lose(Fault.DISK_LOST) == "all that it had is lost"
    assert "not reached the slave" in MODES["async-master"].may_lose(Fault.DISK_LOST)
    assert "not reached the slave" in MODES["async-master"].may_lose(Fault.FAIL_OVER)
    assert "the last ones" in MODES["sync-master"].may_lose(Fault.POWER_LOSS)


def test_offsets_stay_while_no_broker_ends() -> None:
    mode = MODES["async-flush"]
    assert Count.OFFSET_BACK in mode.promised(GENTLE)
    assert Count.OFFSET_BACK not in mode.promised([Fault.KILL])


@pytest.mark.parametrize("mode", CONTROLLED)
def test_where_controllers_elect_there_is_one_master_whatever_happens(mode: str) -> None:
    assert MODES[mode].promised(Fault) >= OF_ELECTIONS | {Count.LATE}
    assert Count.LEFT_BEHIND in MODES[mode].promised(MODES[mode].survives)
    assert Count.LEFT_BEHIND not in MODES[mode].promised([Fault.BIT_FLIP])


def test_offsets_stay_while_nobody_is_elected() -> None:
    mode = MODES["controllers-etcd"]
    assert Count.OFFSET_BACK in mode.promised(WITHOUT_ELECTION)
    assert Count.OFFSET_BACK not in mode.promised([Fault.PAUSE])
    assert not OF_ELECTIONS & MODES["sync-master"].promised([Fault.KILL])


def test_sends_go_on_in_time_where_that_is_promised() -> None:
    one, three = MODES["controller"], MODES["controllers-etcd"]
    assert one.goes_on_within(Fault.MASTER_KILL) == three.goes_on_within(Fault.ETCD_GONE) == 10
    assert one.goes_on_within(Fault.CONTROLLER_KILL) is None
    assert three.goes_on_within(Fault.CONTROLLER_KILL) == 10
    assert three.goes_on_within(Fault.MASTER_PAUSE) is None
    assert MODES["sync-master"].goes_on_within(Fault.KILL) is None


def test_everything_is_explained() -> None:
    assert set(WHAT_HAPPENS) == set(Fault)
    assert set(MEANING) == set(Count)


def test_profiles_last_as_long_as_they_say() -> None:
    seconds = {name: sum(t.seconds for t in trials_of(p)) for name, p in PROFILES.items()}
    assert seconds["ci"] < 120
    assert seconds["ten"] < 600
    assert seconds["controller"] < 600
    assert max(seconds["hour"], seconds["controller-hour"]) < 3600
    # Beside the faults, a trial needs some 7 s to start and end, and 15 s more if something is lost.
    assert _planned_seconds("modes") + 43 * 12 < 40 * 60
    assert _planned_seconds("fifty") < 20 * 60
    for profile in PROFILES.values():
        for trial in trials_of(profile):
            assert all(trial.mode.fits(fault) for fault in trial.faults)


def _planned_seconds(profile: str) -> float:
    ends = []
    for seed, trial in enumerate(trials_of(PROFILES[profile])):
        last = plan(seed, 0, trial.mode, trial.faults, pause_seconds=1, count=trial.count)[-1]
        ends.append(last.at + last.seconds)
        assert last.at + last.seconds < trial.seconds
    return sum(ends)


def test_the_page_is_measured_by_every_mode_of_one_group_with_each_failure_alone() -> None:
    trials = trials_of(PROFILES["modes"])
    assert len(trials) == len({(trial.mode.name, trial.faults) for trial in trials}) == 43
    assert all(len(trial.faults) == 1 and trial.count > 1 for trial in trials)


def test_fifty_times_what_each_mode_survives() -> None:
    trials = trials_of(PROFILES["fifty"])
    assert [(trial.mode.name, *trial.faults, trial.count) for trial in trials] == [
        ("async-flush", Fault.KILL, 50),
        ("sync-flush", Fault.POWER_LOSS, 50),
        ("sync-master", Fault.FAIL_OVER, 50),
        ("controller", Fault.MASTER_KILL, 50),
        ("controllers-etcd", Fault.MASTER_KILL, 50),
    ]
    assert all(set(trial.faults) <= trial.mode.survives for trial in trials)


def test_names_on_the_command_line() -> None:
    assert faults_named("kill,kill,pause") == (Fault.KILL, Fault.PAUSE)
    assert set(faults_named("network")) >= {Fault.CUT, Fault.SLOW}
    with pytest.raises(ValueError, match="no fault 'fire'; expected some of"):
        faults_named("fire")
    with pytest.raises(ValueError, match="no workload 'all'; expected some of"):
        workloads_named("all")
