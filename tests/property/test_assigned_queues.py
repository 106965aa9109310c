"""Whatever is pulled, sought, paused and dropped in whatever order: each queue is handed out in order, from where it
was last sought, without gaps, and never beyond its limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cometmq.client.core.consume.assigned_queues import AssignedQueues, CacheLimits, NextPull
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

QUEUES = [MessageQueue(broker_name="b", queue_id=number, topic="T") for number in range(3)]
LIMITS = CacheLimits(count_all=12, count_queue=5, bytes_queue=7, span=9)
PULL_COUNT_MAX = 4


@dataclass
class Expected:
    """What the next message of a queue must be. A queue holds a message at every even offset."""

    next_offset: int
    is_paused: bool = False


@dataclass
class World:
    assigned: AssignedQueues = field(default_factory=lambda: AssignedQueues(LIMITS))
    expected: dict[MessageQueue, Expected] = field(default_factory=dict)
    under_way: list[NextPull] = field(default_factory=list)


def answer(pull: NextPull, count: int) -> tuple[list[ReceivedMessage], int]:
    first = pull.offset + pull.offset % 2
    found = [
        ReceivedMessage(topic="T", body=b"x", queue_id=pull.queue.queue_id, queue_offset=offset)
        for offset in range(first, first + 2 * count, 2)
    ]
    return found, found[-1].queue_offset + 1 if found else first


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["hold", "drop", "seek", "pause", "resume", "pull", "pull", "answer", "answer", "take"]
        ),
        st.sampled_from(QUEUES),
        st.integers(0, 20),
    ),
    min_size=20,
    max_size=120,
)


@settings(max_examples=300)
@given(STEPS)
def test_every_queue_is_handed_out_in_order_without_gaps(
    steps: list[tuple[str, MessageQueue, int]],
) -> None:
    world = World()
    for queue in QUEUES:
        step(world, "hold", queue, 0)
    for name, queue, number in steps:
        step(world, name, queue, number)
        check(world)


def step(world: World, name: str, queue: MessageQueue, number: int) -> None:
    assigned, expected = world.assigned, world.expected
    is_held = queue in expected
    if name == "hold" and not is_held:
        assigned.add(queue)
        assigned.begin(queue, number)
        expected[queue] = Expected(number)
    elif name == "drop" and is_held:
        assigned.drop(queue)
        del expected[queue]
    elif name == "seek" and is_held:
        assigned.seek(queue, number)
        expected[queue].next_offset = number
    elif name in ("pause", "resume") and is_held:
        getattr(assigned, name)([queue])
        expected[queue].is_paused = name == "pause"
    elif name == "pull":
        if (pull := assigned.next_pull(queue)) is not None:
            assert not expected[queue].is_paused
            world.under_way.append(pull)
    elif name == "answer" and world.under_way:
        pull = world.under_way.pop(number % len(world.under_way))
        found, next_offset = answer(pull, number % (PULL_COUNT_MAX + 1))
        is_taken = assigned.arrived(pull, found, next_offset)
        assert not (is_taken and pull.queue not in expected)
    elif name == "take":
        assigned.finish_handed()
        for message in assigned.take(number % 5 + 1):
            wanted = expected[QUEUES[message.queue_id]]
            assert not wanted.is_paused
            assert message.queue_offset == wanted.next_offset + wanted.next_offset % 2
            wanted.next_offset = message.queue_offset + 1


def check(world: World) -> None:
    assigned = world.assigned
    assert assigned.queues == sorted(world.expected)
    # A pull may be allowed while each limit is just reached, and several may be under way at once.
    assert 0 <= assigned.cached_count <= LIMITS.count_all + len(QUEUES) * PULL_COUNT_MAX
    positions = assigned.positions()
    for queue, wanted in world.expected.items():
        # Only offsets without a message may be passed over.
        assert wanted.next_offset <= positions[queue] <= wanted.next_offset + 1
        assert positions[queue] <= wanted.next_offset + wanted.next_offset % 2
    done = assigned.to_commit(handed_is_done=False)
    assert all(done[queue] <= positions[queue] for queue in done)
