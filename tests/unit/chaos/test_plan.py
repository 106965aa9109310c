"""The schedule follows from the seed alone; the promises of a mode from the faults that happened."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.chaos.plan.faults import GENTLE, WHAT_HAPPENS, Fault
from tests.chaos.plan.modes import MEANING, MODES, Count
from tests.chaos.plan.profiles import PROFILES, faults_named, trials_of, workloads_named
from tests.chaos.plan.schedule import broker_names, plan


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


def test_names_of_brokers() -> None:
    assert broker_names(MODES["2m-2s-sync"]) == ["b1", "b1s1", "b2", "b2s1"]


@pytest.mark.parametrize(
    ("mode", "fault", "is_promised"),
    [
        ("async-flush", Fault.KILL, True),
        ("async-flush", Fault.POWER_LOSS, False),
        ("sync-flush", Fault.POWER_LOSS, True),
        ("async-master", Fault.FAIL_OVER, False),
        ("sync-master", Fault.FAIL_OVER, True),
    ],
)
def test_nothing_is_lost_by_a_mode_that_survives(
    mode: str, fault: Fault, is_promised: bool
) -> None:
    assert (Count.LOST in MODES[mode].promised([Fault.CUT, fault])) is is_promised
    assert Count.ALTERED in MODES[mode].promised(Fault)


def test_offsets_stay_while_no_broker_ends() -> None:
    mode = MODES["async-flush"]
    assert Count.OFFSET_BACK in mode.promised(GENTLE)
    assert Count.OFFSET_BACK not in mode.promised([Fault.KILL])


def test_everything_is_explained() -> None:
    assert set(WHAT_HAPPENS) == set(Fault)
    assert set(MEANING) == set(Count)


def test_profiles_last_as_long_as_they_say() -> None:
    seconds = {name: sum(t.seconds for t in trials_of(p)) for name, p in PROFILES.items()}
    assert seconds["ci"] < 120
    assert seconds["ten"] < 600
    assert seconds["hour"] < 3600
    for profile in PROFILES.values():
        for trial in trials_of(profile):
            assert all(trial.mode.fits(fault) for fault in trial.faults)


def test_names_on_the_command_line() -> None:
    assert faults_named("kill,kill,pause") == (Fault.KILL, Fault.PAUSE)
    assert set(faults_named("network")) >= {Fault.CUT, Fault.SLOW}
    with pytest.raises(ValueError, match="no fault 'fire'; expected some of"):
        faults_named("fire")
    with pytest.raises(ValueError, match="no workload 'all'; expected some of"):
        workloads_named("all")
