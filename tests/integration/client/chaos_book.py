"""What was sent and what came, and whether the one follows from the other as RocketMQ promises.

Messages are known by their place: broker, queue and offset. What is promised while processes are killed:

    at least once   a message whose send was confirmed is delivered, with its own body
    sent in order   of two messages of one key, the second sent after the first was confirmed, and both in the same
                    queue, the second has the higher offset. (A key changes its queue while a broker is gone; between
                    two queues there is no order.)
    read in order   an orderly listener is given a message for the first time when every earlier one of its queue has
                    been given to somebody at least once. After a crash a queue is read again from the last position
                    that was saved: messages may be repeated, but none is skipped or overtaken.

While nothing is killed, each message is delivered exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

Queue = tuple[str, int]
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True, order=True)
class Delivery:
    """``reader`` is the process that was given the message."""

    nanoseconds: int
    place: Place
    body: str
    reader: str


@dataclass
class SendBook:
    """One topic's confirmed sends. A body is ``key:number``."""

    confirmed: dict[Place, str] = field(default_factory=dict)
    failed: int = 0

    def queue_orders(self) -> list[str]:
        """Violations of *sent in order*."""
        last: dict[tuple[str, Queue], tuple[int, int]] = {}
        wrong = []
        for place, body in self.confirmed.items():
            key, _, number = body.partition(":")
            queue, offset = (key, place[:2]), place[2]
            number_before, offset_before = last.get(queue, (-1, -1))
            if int(number) > number_before and offset <= offset_before:
                wrong.append(f"{body} at {place}, but number {number_before} is at {offset_before}")
            last[queue] = (int(number), offset)
        return wrong


class ReadBook:
    """What one consumer process writes down, read as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes_read = 0
        self._deliveries: list[Delivery] = []

    def deliveries(self) -> list[Delivery]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._bytes_read)
            # A line is written by one call, so at most the last one is not whole.
            whole, newline, _ = file.read().rpartition(b"\n")
        self._bytes_read += len(whole + newline)
        for line in whole.decode().splitlines():
            nanoseconds, broker, queue_id, offset, body = line.split()
            place = (broker, int(queue_id), int(offset))
            self._deliveries.append(Delivery(int(nanoseconds), place, body, self.path.name))
        return self._deliveries

    def queues(self) -> list[str]:
        """What the process has now."""
        file = self.path.with_suffix(".queues")
        return file.read_text().split() if file.exists() else []


def missing(confirmed: dict[Place, str], deliveries: Iterable[Delivery]) -> list[str]:
    """Violations of *at least once*."""
    bodies = {delivery.place: delivery.body for delivery in deliveries}
    return [
        f"{body} at {place}: delivered {bodies.get(place)}"
        for place, body in confirmed.items()
        if bodies.get(place) != body
    ]


def inversions(deliveries: Iterable[Delivery]) -> list[str]:
    """Violations of *read in order*."""
    reached: dict[Queue, int] = defaultdict(lambda: -1)
    seen: set[Place] = set()
    wrong = []
    for delivery in sorted(deliveries):
        queue, offset = delivery.place[:2], delivery.place[2]
        if delivery.place not in seen:
            if offset != reached[queue] + 1:
                wrong.append(f"{delivery} came when the queue had been read to {reached[queue]}")
            reached[queue] = max(reached[queue], offset)
        seen.add(delivery.place)
    return wrong


def repeated(deliveries: Iterable[Delivery], since_ns: int = 0) -> list[Delivery]:
    """Deliveries after ``since_ns`` of messages that had been delivered before."""
    seen: set[Place] = set()
    again = []
    for delivery in sorted(deliveries):
        if delivery.place in seen and delivery.nanoseconds >= since_ns:
            again.append(delivery)
        seen.add(delivery.place)
    return again
