"""Each checker finds a violation that was planted, and nothing in a history that is as it should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.chaos.judge.checkers import gone
from tests.chaos.judge.history import (
    FAILED,
    ROLLED_BACK,
    Bound,
    Delivery,
    History,
    Position,
    Reign,
    Send,
    Sighting,
    make_body,
    read_body,
)
from tests.chaos.judge.verdict import CHECKS, judge
from tests.chaos.plan.modes import Count

QUEUE = ("b1", 0)


@dataclass
class Story:
    """Builds a history: everything that was sent comes once, in order, unless told otherwise."""

    history: History = field(default_factory=History)
    now: float = 0.0

    def send(self, id: str, **values: Any) -> None:
        self.now += 1
        workload = id.partition("/")[0]
        sent = Send(workload, id, self.now, self.now, "SEND_OK", QUEUE, int(self.now))
        self.history.sends.append(sent._replace(**values))
        self.history.stored.setdefault(workload, set()).add(id)

    def deliver(self, id: str, *, is_intact: bool = True) -> None:
        self.now += 1
        workload = id.partition("/")[0]
        self.history.deliveries.append(
            Delivery(workload, id, is_intact, self.now, QUEUE, int(self.now))
        )

    def position(self, offset: int, *, is_read: bool) -> None:
        self.now += 1
        self.history.positions.append(Position(self.now, QUEUE, offset, is_read))

    def elected(self, epoch: int, master: str, *, host: str = "c1") -> None:
        self.now += 1
        self.history.sightings.append(Sighting(self.now, host, "b1", epoch, master, host[0] == "c"))

    def probe(self, broker: str, *, position: int) -> None:
        """Nobody consumes it."""
        self.send(f"probes/0/{position}", broker=broker, position=position)


def good_story() -> Story:
    story = Story()
    for number in range(3):
        story.send(f"ordered/0/{number}")
        story.deliver(f"ordered/0/{number}")
    # Nobody knows whether a failed send is stored.
    story.send("sends/0/0", status=FAILED)
    story.send("sends/0/1", status=FAILED)
    story.deliver("sends/0/1")
    story.send("transactions/0/0", fate=ROLLED_BACK)
    story.send("delayed/0/0", due=story.now + 2)
    story.now += 5
    story.deliver("delayed/0/0")
    for offset in (3, 5):
        story.position(offset, is_read=False)
        story.position(offset, is_read=True)
    story.elected(1, "b1:1")
    story.probe("b1:1", position=10)
    story.elected(2, "b1s1:1")
    story.probe("b1s1:1", position=100)
    story.history.reigns["b1"] = [Reign(1, 0), Reign(2, 50)]
    story.history.bounds.append(Bound(1.0, 2.0, "master-kill", 10.0))
    return story


def plant_lost(story: Story) -> None:
    story.send("sends/0/9")


def plant_missing(story: Story) -> None:
    story.send("sends/0/9")
    story.deliver("sends/0/9")
    story.history.stored["sends"].discard("sends/0/9")


def plant_altered(story: Story) -> None:
    story.deliver("", is_intact=False)


def plant_never_sent(story: Story) -> None:
    story.deliver("sends/7/7")


def plant_rolled_back(story: Story) -> None:
    story.deliver("transactions/0/0")


def plant_duplicate(story: Story) -> None:
    story.deliver("ordered/0/1")


def plant_reordered(story: Story) -> None:
    for number in (3, 4):
        story.send(f"ordered/0/{number}")
    story.deliver("ordered/0/4")
    story.deliver("ordered/0/3")


def plant_early(story: Story) -> None:
    story.send("delayed/0/1", due=story.now + 60)
    story.deliver("delayed/0/1")


def plant_offset_back(story: Story) -> None:
    story.position(4, is_read=True)
    # Counted once, and not again while the group stays where it is.
    story.position(4, is_read=True)


def plant_diverged(story: Story) -> None:
    story.history.diverged.append("b1 and b1s1 differ")


def plant_ack_of_a_deposed_master(story: Story) -> None:
    story.probe("b1:1", position=120)


def plant_two_named_masters(story: Story) -> None:
    story.elected(2, "b1s2:1", host="c2")


def plant_epoch_back_at_a_controller(story: Story) -> None:
    story.elected(1, "b1:1")
    # Counted once, and not again while it stays there.
    story.elected(1, "b1:1")


def plant_epoch_back_at_a_broker(story: Story) -> None:
    story.elected(2, "b1s1:1", host="b1s1")
    story.elected(1, "b1s1:1", host="b1s1")


def plant_late(story: Story) -> None:
    began = story.now
    story.now += 30
    story.send("ordered/0/3")
    story.deliver("ordered/0/3")
    story.history.bounds.append(Bound(began, began + 5, "master-kill", 10.0))


def plant_unexpected(story: Story) -> None:
    story.history.unexpected.append("sends/0/9 at 3.00 s: ZeroDivisionError")


@pytest.mark.parametrize(
    ("count", "plant"),
    [
        (Count.UNEXPECTED, plant_unexpected),
        (Count.TWO_MASTERS, plant_ack_of_a_deposed_master),
        (Count.TWO_MASTERS, plant_two_named_masters),
        (Count.EPOCH_BACK, plant_epoch_back_at_a_controller),
        (Count.EPOCH_BACK, plant_epoch_back_at_a_broker),
        (Count.LATE, plant_late),
        (Count.LOST, plant_lost),
        (Count.MISSING, plant_missing),
        (Count.ALTERED, plant_altered),
        (Count.PHANTOM, plant_never_sent),
        (Count.PHANTOM, plant_rolled_back),
        (Count.DUPLICATED, plant_duplicate),
        (Count.REORDERED, plant_reordered),
        (Count.EARLY, plant_early),
        (Count.OFFSET_BACK, plant_offset_back),
        (Count.DIVERGED, plant_diverged),
    ],
)
def test_a_planted_violation_is_found_by_its_checker_alone(
    count: Count, plant: Callable[[Story], None]
) -> None:
    story = good_story()
    plant(story)
    found = {name: len(wrong) for name, wrong in judge(story.history).items() if wrong}
    assert found == {count: 1}


def test_a_good_history_has_no_violation() -> None:
    assert not any(judge(good_story().history).values())
    assert set(CHECKS) == set(Count)


def test_what_a_fault_destroyed_on_purpose_is_not_lost() -> None:
    story = good_story()
    plant_lost(story)
    story.history.damaged.add("sends/0/9")
    assert not any(judge(story.history).values())


def test_gone_is_what_was_lost_or_is_missing_each_once() -> None:
    story = good_story()
    assert gone(story.history) == set()
    plant_lost(story)
    story.history.stored["sends"].discard("sends/0/9")
    story.history.stored["ordered"].discard("ordered/0/0")
    assert gone(story.history) == {"sends/0/9", "ordered/0/0"}


def test_without_an_audit_only_what_never_came_is_gone() -> None:
    story = good_story()
    story.history.stored.clear()
    plant_lost(story)
    story.history.stored.clear()
    assert gone(story.history) == {"sends/0/9"}


def test_a_queue_that_is_read_again_after_a_crash_is_not_reordered() -> None:
    story = good_story()
    for number in range(3):
        story.deliver(f"ordered/0/{number}")
    assert not judge(story.history)[Count.REORDERED]


def test_a_body_knows_its_id_and_whether_it_is_intact() -> None:
    body = make_body("sends/0/1", b"\x00 any \xff bytes")
    assert read_body(body) == ("sends/0/1", True)
    for position in range(len(body)):
        flipped = bytearray(body)
        flipped[position] ^= 4
        assert not read_body(bytes(flipped))[1], position
    assert read_body(b"") == ("", False)
