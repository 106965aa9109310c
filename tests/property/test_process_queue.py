"""A process queue beside a plain list of what is unfinished: same counts, same commit offset, whatever happens."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cometmq.client.core.consume.process_queue import OrderlyQueue, ProcessQueue
from cometmq.model.messages.received_message import ReceivedMessage


def _message(offset: int, size: int) -> ReceivedMessage:
    return ReceivedMessage(topic="T", body=b"x" * size, queue_offset=offset)


class ConcurrentMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = ProcessQueue(5)
        self.unfinished: list[ReceivedMessage] = []
        self.finished: list[ReceivedMessage] = []
        self.next_offset = 5

    @rule(
        gaps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=6),
        tail=st.integers(0, 3),
        repeat=st.integers(0, 2),
    )
    def pull(self, gaps: list[tuple[int, int]], tail: int, repeat: int) -> None:
        """New messages with gaps, before them some that came before."""
        again = [_message(self.next_offset - back, 1) for back in range(repeat, 0, -1)]
        fresh = []
        for gap, size in gaps:
            fresh.append(_message(self.next_offset + gap, size))
            self.next_offset += gap + 1
        self.next_offset += tail
        assert list(self.queue.add(again + fresh, self.next_offset)) == fresh
        self.unfinished += fresh

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.unfinished) - 1))
        message = self.unfinished.pop(index)
        assert self.queue.finish(message.queue_offset)
        self.finished.append(message)

    @precondition(lambda self: self.finished)
    @rule(data=st.data())
    def finish_again(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.finished) - 1))
        assert not self.queue.finish(self.finished[index].queue_offset)

    @invariant()
    def agrees(self) -> None:
        offsets = [message.queue_offset for message in self.unfinished]
        assert self.queue.next_offset == self.next_offset
        assert self.queue.count == len(offsets)
        assert self.queue.size_bytes == sum(len(message.body) for message in self.unfinished)
        assert self.queue.commit_offset == (offsets[0] if offsets else self.next_offset)
        assert self.queue.span == (offsets[-1] - offsets[0] if offsets else 0)
        assert self.queue.max_offset == (offsets[-1] if offsets else self.next_offset - 1)


class OrderlyMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = OrderlyQueue(0)
        self.unfinished: list[ReceivedMessage] = []
        self.taken = 0
        self.next_offset = 0

    @rule(count=st.integers(0, 5))
    def pull(self, count: int) -> None:
        fresh = [_message(self.next_offset + index, 1) for index in range(count)]
        self.next_offset += count
        self.queue.add(fresh, self.next_offset)
        self.unfinished += fresh

    @precondition(lambda self: not self.taken)
    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        expected = self.unfinished[:count]
        assert self.queue.take(count) == expected
        self.taken = len(expected)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, self.taken))
        del self.unfinished[:count]
        self.taken = 0
        expected = self.unfinished[0].queue_offset if self.unfinished else self.next_offset
        assert self.queue.commit(count) == expected

    @invariant()
    def agrees(self) -> None:
        assert self.queue.count == len(self.unfinished)
        assert self.queue.waiting_count == len(self.unfinished) - self.taken
        assert list(self.queue.taken) == self.unfinished[: self.taken]


TestConcurrentQueue = ConcurrentMachine.TestCase
TestOrderlyQueue = OrderlyMachine.TestCase
