"""Heartbeats: who is alive, who is in doubt, who is gone."""

from __future__ import annotations

from tests.unit.controller.group_of import group_of

from cometmq.controller.group import Report
from cometmq.controller.liveness import SILENCE_SECONDS, Liveness, silence_seconds

GROUP = group_of(2, master=1, in_sync=(1, 2), epoch=3, set_epoch=6)
REPORT = Report(epoch=3, max_offset=100)
LATER = 1000.0


def beat(
    liveness: Liveness,
    broker_id: int,
    now: float,
    connection: object = None,
    report: Report = REPORT,
) -> bool:
    return liveness.heard(
        "bk", broker_id, "h:1", report, SILENCE_SECONDS, connection or object(), now
    )


def test_who_is_heard_from_in_time_is_alive() -> None:
    liveness = Liveness(0.0)
    assert beat(liveness, 1, LATER)
    assert not beat(liveness, 1, LATER + 1)
    assert liveness.living(GROUP, LATER + 11).reports == {1: REPORT}
    assert liveness.living(GROUP, LATER + 11.1).reports == {}
    assert liveness.living(None, LATER).reports == {}


def test_after_a_start_nobody_is_called_dead_for_a_while() -> None:
    liveness = Liveness(LATER)
    assert liveness.living(GROUP, LATER + 10).doubtful == {1, 2}
    beat(liveness, 1, LATER + 1, connection := object())
    assert liveness.living(GROUP, LATER + 2).doubtful == {2}
    liveness.hang_up(connection)
    assert not liveness.living(GROUP, LATER + 3).may_include(1)
    assert liveness.living(GROUP, LATER + 10.1).doubtful == set()


def test_what_a_broker_said_before_it_started_again_counts_no_longer() -> None:
    liveness = Liveness(0.0)
    beat(liveness, 1, LATER)
    liveness.registered("bk", 1, "h:1", object(), LATER + 1)
    (report,) = liveness.living(GROUP, LATER + 1).reports.values()
    assert report.log < Report(epoch=-1, max_offset=0).log
    # A log that was cut is shorter than before.
    beat(liveness, 1, LATER + 2, report=Report(epoch=2, max_offset=50))
    assert liveness.living(GROUP, LATER + 2).reports == {1: Report(epoch=2, max_offset=50)}


def test_a_lost_connection_ends_it_at_once_but_a_late_end_of_an_old_one_does_not() -> None:
    liveness = Liveness(0.0)
    old, new = object(), object()
    beat(liveness, 1, LATER, old)
    beat(liveness, 1, LATER + 1, new)
    assert liveness.hang_up(old) == []
    assert liveness.hang_up(new) == [("bk", 1)]
    assert liveness.hang_up(new) == []
    assert liveness.living(GROUP, LATER + 1).reports == {}
    assert liveness.silent(LATER + 99) == []


def test_the_silent_are_told_once() -> None:
    liveness = Liveness(0.0)
    beat(liveness, 1, LATER)
    beat(liveness, 2, LATER + 5)
    assert liveness.silent(LATER + 10) == []
    (lost,) = liveness.silent(LATER + 12)
    assert (lost.broker_name, lost.broker_id, lost.silent_seconds) == ("bk", 1, 12)
    assert liveness.silent(LATER + 13) == []


def test_it_knows_where_a_living_broker_is() -> None:
    liveness = Liveness(0.0)
    beat(liveness, 1, LATER)
    assert liveness.address("bk", 1, LATER + 10) == "h:1"
    assert liveness.address("bk", 1, LATER + 11) is None
    assert liveness.address("bk", 2, LATER) is None


def test_the_forgotten_leave_nothing_behind() -> None:
    liveness = Liveness(0.0)
    beat(liveness, 1, LATER)
    liveness.forget("bk", [1, 2])
    assert len(liveness) == 0


def test_how_long_a_broker_may_be_silent() -> None:
    assert silence_seconds(None) == silence_seconds(0) == silence_seconds(-5) == 10
    assert silence_seconds(3000) == 3
    assert silence_seconds(1 << 60) == 3600


def test_who_begins_to_lead_takes_nobody_for_dead_whom_it_may_have_missed() -> None:
    """It was cut off from all of them until now. A lost connection is another matter: that was seen."""
    liveness = Liveness(0.0)
    beat(liveness, 1, LATER)
    beat(liveness, 2, LATER, connection := object())
    liveness.hang_up(connection)
    now = LATER + 60
    assert liveness.living(GROUP, now).doubtful == set()
    liveness.watch(now)
    living = liveness.living(GROUP, now + 5)
    assert living.doubtful == {1}
    assert living.reports == {}
    beat(liveness, 1, now + 6)
    assert liveness.living(GROUP, now + 6).doubtful == set()
    assert liveness.living(GROUP, now + 10.1).doubtful == set()
