"""What a history says about elections: who reigned when, what did not survive one, how long nobody took messages."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.judge.elections import (
    Election,
    elections,
    epoch_at,
    gaps,
    left_behind,
    sends_under,
    stood_still,
)
from tests.chaos.judge.history import FAILED, History, Reign, Send, Sighting
from tests.chaos.judge.log_compare import reigns_in
from tests.chaos.judge.verdict import judge
from tests.chaos.plan.modes import Count

QUEUE = ("b1", 0)


def sent(ended: float, status: str = "SEND_OK", *, workload: str = "sends") -> Send:
    return Send(workload, f"{workload}/0/{ended}", ended - 0.1, ended, status, QUEUE, 0)


def seen(at: float, epoch: int, master: str, host: str = "c1") -> Sighting:
    return Sighting(at, host, "b1", epoch, master, host.startswith("c"))


def test_an_election_is_told_once_by_the_first_controller_that_knows() -> None:
    history = History()
    history.sightings = [
        seen(0.5, 0, ""),
        seen(1.0, 1, "b1:1"),
        seen(1.2, 1, "b1:1", host="c2"),
        seen(5.0, 2, "b1:1", host="b1"),
        seen(5.1, 2, "b1s1:1"),
    ]
    assert elections(history) == [Election(1.0, "b1", 1, "b1:1"), Election(5.1, "b1", 2, "b1s1:1")]


def test_what_an_election_left_behind_is_named_with_it() -> None:
    history = History(sightings=[seen(1.0, 1, "b1:1"), seen(5.0, 2, "b1s1:1")])
    history.sends = [sent(4.0)._replace(broker="b1:1"), sent(6.0)]
    history.stored = {"sends": set()}
    found = judge(history)
    assert len(found[Count.MISSING]) == 2
    [line] = found[Count.LEFT_BEHIND]
    assert "by b1:1, and is gone after the election of b1s1:1 at 5.00 s (epoch 2)" in line
    history.stored = {"sends": {send.id for send in history.sends}}
    assert left_behind(history) == []


def test_a_position_has_the_epoch_that_began_last_before_it() -> None:
    reigns = [Reign(1, 0), Reign(4, 50)]
    assert [epoch_at(reigns, position) for position in (0, 49, 50, 999)] == [1, 1, 4, 4]
    assert epoch_at([Reign(4, 50)], 49) is None
    assert epoch_at([], 3) is None


def test_a_group_that_has_no_reigns_has_no_two_masters() -> None:
    history = History(
        sends=[sent(1.0)._replace(broker=name, position=7) for name in ("x:1", "y:1")]
    )
    assert judge(history)[Count.TWO_MASTERS] == []


def test_probes_must_stay_in_the_log_but_nobody_consumes_them() -> None:
    history = History(sends=[sent(1.0, workload="probes")], stored={"probes": set()})
    found = judge(history)
    assert not found[Count.LOST]
    assert len(found[Count.MISSING]) == 1


def test_sends_stand_still_from_the_fault_to_the_next_acknowledgement() -> None:
    sends = [sent(1.0), sent(2.0), sent(2.5, FAILED), sent(2.6, workload="probes"), sent(7.0)]
    assert stood_still(sends, 2.2, 3.0) == 4.8
    # What stands still within a fault counts also if some got through first.
    assert stood_still(sends, 1.5, 6.0) == 5.0
    # Afterwards it is not this fault's.
    assert stood_still(sends, 0.5, 1.5) == 1.0
    # Nothing comes through any more: up to the last try.
    assert stood_still([*sends, sent(20.0, FAILED)], 8.0, 9.0) == 12.0
    assert stood_still([], 1.0, 2.0) == 0.0


def test_what_was_under_way_in_the_course_of_a_fault() -> None:
    before, across, within, after = sent(1.0), sent(2.05), sent(2.5, FAILED), sent(3.5)
    sends = [before, across, within, sent(2.6, workload="probes"), after]
    assert sends_under(sends, 2.0, 3.0) == [across, within]


def test_a_group_is_without_a_master_while_nobody_acknowledges_not_even_probes() -> None:
    history = History(sends=[sent(1.0), sent(2.0, workload="probes"), sent(2.5, FAILED), sent(5.0)])
    assert gaps(history, until=5.5) == [(2.0, 5.0)]
    assert gaps(history, until=9.0) == [(2.0, 5.0), (5.0, 9.0)]
    # Each group for itself.
    history.sends.append(sent(3.5)._replace(queue=("b2", 0)))
    assert gaps(history, until=4.0) == [(2.0, 4.0)]
    assert gaps(History(), until=9.0) == []


def test_the_epochs_of_a_log_are_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "epochFileCheckpoint"
    assert reigns_in(file) == []
    file.write_text("2\n12326036\n1-0\n2-4160\n")
    assert reigns_in(file) == [Reign(1, 0), Reign(2, 4160)]
