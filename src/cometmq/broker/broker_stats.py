"""Counters of what the broker does, and what they were a minute, an hour and a day ago.

The data path keeps a ``Tally`` at hand and adds to its two integers; everything else happens when ``sample`` is
called (every 10 s, from the event loop) or when somebody asks. A tally that does not move takes no samples.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from cometmq.base.ports import Clock
from cometmq.broker.metrics.pop_counts import PopCounts
from cometmq.model.messages.counted_row import BYTES, MESSAGES, SIZES, count_message, new_row

SAMPLE_SECONDS: Final = 10.0

# Width of the window, distance of its samples, samples kept (one more than fit, so that the edge is covered).
_WINDOWS: Final = ((60.0, 10.0, 8), (3600.0, 600.0, 8), (86400.0, 3600.0, 26))

_LATENCY_EDGES_MS: Final = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
_LATENCY_NAMES: Final = (
    "[<=0ms]",
    *(f"[{low}~{high}ms]" for low, high in pairwise(_LATENCY_EDGES_MS[:6])),
    "[500ms~1s]",
    "[1~2s]",
    "[2~3s]",
    "[3~4s]",
    "[4~5s]",
    "[5~10s]",
    "[10s~]",
)


class Window(NamedTuple):
    """What happened inside one window: total, per second, and per single event."""

    sum: int
    tps: float
    average: float


class StatsView(NamedTuple):
    minute: Window
    hour: Window
    day: Window


class Tally:
    """Messages and their bytes. ``count`` and ``size_bytes`` are added to directly by the data path."""

    __slots__ = ("_samples", "count", "size_bytes")

    def __init__(self) -> None:
        self.count = 0
        self.size_bytes = 0
        # One list of (monotonic time, count, bytes) per window, oldest first; made when it first moves.
        self._samples: tuple[list[tuple[float, int, int]], ...] = ()

    def sample(self, now: float) -> None:
        """Remember the present values where they changed since the last sample of a window."""
        if not self._samples:
            if self.count == 0:
                return
            # The counter stood at zero until the sample before this one.
            self._samples = tuple([(now - distance, 0, 0)] for _, distance, _ in _WINDOWS)
        for samples, (_, distance, kept) in zip(self._samples, _WINDOWS, strict=True):
            at, count, _ = samples[-1]
            if count != self.count and now - at >= distance * 0.95:
                samples.append((now, self.count, self.size_bytes))
                if len(samples) > kept:
                    del samples[0]

    def view(self, now: float, *, of_bytes: bool) -> StatsView:
        """The three windows that end now, of the bytes or of the messages."""
        windows = []
        for index, (width, _, _) in enumerate(_WINDOWS):
            count, size_bytes = self._before(index, now - width)
            events = self.count - count
            total = self.size_bytes - size_bytes if of_bytes else events
            windows.append(Window(total, total / width, total / events if events else 0.0))
        return StatsView(*windows)

    def rate(self, now: float, seconds: float) -> float:
        """Messages per second over the last ``seconds``."""
        index = 0 if seconds <= 60 else 1
        return (self.count - self._before(index, now - seconds)[0]) / seconds

    def _before(self, window: int, then: float) -> tuple[int, int]:
        """Count and bytes at a time in the past: the newest sample that is not after it, else the oldest one."""
        if not self._samples:
            return (0, 0)
        samples = self._samples[window]
        at = bisect_right(samples, then, key=lambda sample: sample[0])
        _, count, size_bytes = samples[max(at - 1, 0)]
        return count, size_bytes


NORMAL: Final = "normal"
FIFO: Final = "fifo"
DELAY: Final = "delay"
TRANSACTION: Final = "transaction"
"""Kinds of messages, as RocketMQ's metrics name them."""


class PutTally:
    """Messages of one kind stored in a topic."""

    __slots__ = ("row",)

    def __init__(self) -> None:
        self.row = new_row()

    def add(self, size_bytes: int) -> None:
        """Count one message."""
        count_message(self.row, size_bytes)

    def add_all(self, sizes: Iterable[int]) -> None:
        for size_bytes in sizes:
            count_message(self.row, size_bytes)

    @property
    def count(self) -> int:
        return self.row[MESSAGES]

    @property
    def size_bytes(self) -> int:
        return self.row[BYTES]

    @property
    def by_size(self) -> list[int]:
        """Messages no larger than each of ``SIZE_EDGES``, and than the one before; then the others."""
        return [*self.row[SIZES:]]


class TopicPuts(Tally):
    """All messages stored in a topic: summed up by ``refresh``, since the data path counts each once, by its kind."""

    __slots__ = ("kinds",)

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, PutTally] = {}

    def refresh(self) -> TopicPuts:
        self.count = sum(tally.count for tally in self.kinds.values())
        self.size_bytes = sum(tally.size_bytes for tally in self.kinds.values())
        return self


class BrokerStats:
    """All tallies of one broker. Owned by the event loop; not thread-safe."""

    def __init__(self, clock: Clock, *, cluster: str = "DefaultCluster") -> None:
        self._clock = clock
        self._cluster = cluster
        self._topic_put: dict[str, TopicPuts] = {}
        self._group_get: dict[str, Tally] = {}
        self._sent_back: dict[str, Tally] = {}
        self._dead_letters: dict[str, Tally] = {}
        self._put = Tally()
        # What topics that are gone had counted, so that the total never goes back.
        self._forgotten = Tally()
        self.pop = PopCounts()
        self.get_found = Tally()
        """Messages and bytes that pulls shipped."""
        self.pulls_found = Tally()
        self.pulls_missed = Tally()
        self.put_failed_count = 0
        self.put_max_ms = 0
        self.get_max_ms = 0
        self._put_latencies = [0] * len(_LATENCY_NAMES)
        self.boot_ms = clock.wall_ms()
        self._mornings = Mornings()

    def topic_put(self, topic: str, kind: str = NORMAL) -> PutTally:
        """The tally of messages of a kind stored in a topic; stays valid, to be kept by the caller."""
        puts = self._topic_put.get(topic)
        if puts is None:
            puts = self._topic_put[topic] = TopicPuts()
        tally = puts.kinds.get(kind)
        if tally is None:
            tally = puts.kinds[kind] = PutTally()
        return tally

    def group_get(self, topic: str, group: str) -> Tally:
        """The tally of what a group pulled of a topic."""
        key = f"{topic}@{group}"
        tally = self._group_get.get(key)
        if tally is None:
            tally = self._group_get[key] = Tally()
        return tally

    def pulled(self, topic: str, group: str, count: int, size_bytes: int) -> None:
        """Count what one pull or pop of a group found."""
        self.pulls_found.count += 1
        found, of_group = self.get_found, self.group_get(topic, group)
        found.count += count
        found.size_bytes += size_bytes
        of_group.count += count
        of_group.size_bytes += size_bytes

    def sent_back(self, topic: str, group: str) -> None:
        """Count a message of a topic that a group gave back."""
        self._sent_back.setdefault(f"{topic}@{group}", Tally()).count += 1

    def dead_letter(self, topic: str, group: str) -> None:
        """Count a message of a topic that a group gave up."""
        self._dead_letters.setdefault(f"{topic}@{group}", Tally()).count += 1

    @property
    def puts(self) -> Mapping[str, TopicPuts]:
        """By topic; to be refreshed before their sums are read."""
        return self._topic_put

    def taken(self) -> Iterable[tuple[str, str, Tally]]:
        """Topic, group, and what the group got of it."""
        return _by_pair(self._group_get)

    def dead_letters(self) -> Iterable[tuple[str, str, Tally]]:
        """Topic, group, and what of it became dead letters."""
        return _by_pair(self._dead_letters)

    @property
    def put(self) -> Tally:
        """All messages stored by sends. Summed up here, so that the data path counts each message once."""
        tallies = [self._forgotten, *(puts.refresh() for puts in self._topic_put.values())]
        self._put.count = sum(tally.count for tally in tallies)
        self._put.size_bytes = sum(tally.size_bytes for tally in tallies)
        return self._put

    def slow_put(self, milliseconds: float) -> None:
        """Count an append that took a millisecond or more by its duration."""
        self._put_latencies[bisect_left(_LATENCY_EDGES_MS, int(milliseconds))] += 1
        if milliseconds > self.put_max_ms:
            self.put_max_ms = int(milliseconds)

    def sample(self) -> None:
        """Call every ``SAMPLE_SECONDS``."""
        now = self._clock.monotonic()
        put = self.put  # which refreshes those of the topics
        for table in (self._topic_put, self._group_get, self._sent_back):
            for tally in table.values():
                tally.sample(now)
        for tally in (put, self.get_found, self.pulls_found, self.pulls_missed):
            tally.sample(now)
        self._mornings.roll(self._clock.wall_ms(), self.put.count, self.get_found.count)

    def view(self, name: str, key: str) -> StatsView | None:
        """What VIEW_BROKER_STATS_DATA asks for, or None when nothing is counted under that name and key."""
        family, _, unit = name.rpartition("_")
        tally = self._tally(family, key)
        if tally is None or unit not in ("NUMS", "SIZE"):
            return None
        return tally.view(self._clock.monotonic(), of_bytes=unit == "SIZE")

    def _tally(self, family: str, key: str) -> Tally | None:
        """Lists of all topics ask for thousands of these, so only the one that is asked for is summed up."""
        match family:
            case "TOPIC_PUT":
                puts = self._topic_put.get(key)
                return None if puts is None else puts.refresh()
            case "GROUP_GET":
                return self._group_get.get(key)
            case "SNDBCK_PUT":
                return self._sent_back.get(key)
            case "BROKER_PUT":
                return self.put if key == self._cluster else None
            case "BROKER_GET":
                return self.get_found if key == self._cluster else None
            case _:
                return None

    def put_tps(self) -> str:
        return self._rates(self.put)

    def get_found_tps(self) -> str:
        return self._rates(self.pulls_found)

    def get_miss_tps(self) -> str:
        return self._rates(self.pulls_missed)

    def get_transferred_tps(self) -> str:
        return self._rates(self.get_found)

    def get_total_tps(self) -> str:
        now = self._clock.monotonic()
        return " ".join(
            str(self.pulls_found.rate(now, seconds) + self.pulls_missed.rate(now, seconds))
            for seconds in (10, 60, 600)
        )

    def put_distribution(self) -> str:
        """``[<=0ms]:N [0~10ms]:N …`` as brokerStatus prints it."""
        counts = self._latency_counts()
        return " ".join(
            f"{name}:{count}" for name, count in zip(_LATENCY_NAMES, counts, strict=True)
        )

    def put_latency_ms(self, quantile: float) -> float:
        """The end of the bucket below which that part of all appends lies, no more than the slowest took."""
        counts = self._latency_counts()
        total = sum(counts)
        seen = 0
        for count, edge_ms in zip(counts, _LATENCY_EDGES_MS, strict=False):
            seen += count
            if seen >= total * quantile:
                return float(min(edge_ms, self.put_max_ms))
        return float(self.put_max_ms)

    def _latency_counts(self) -> list[int]:
        counts = list(self._put_latencies)
        # Appends below a millisecond, nearly all of them, are not counted one by one.
        counts[0] = self.put.count - sum(counts)
        return counts

    @property
    def mornings(self) -> Mornings:
        return self._mornings

    def forget_topic(self, topic: str) -> None:
        gone = self._topic_put.pop(topic, None)
        if gone is not None:
            gone.refresh()
            self._forgotten.count += gone.count
            self._forgotten.size_bytes += gone.size_bytes
        self.pop.forget_topic(topic)
        prefix = topic + "@"
        self._forget(lambda key: key.startswith(prefix))

    def forget_group(self, group: str) -> None:
        self.pop.forget_group(group)
        suffix = "@" + group
        self._forget(lambda key: key.endswith(suffix))

    def _forget(self, is_meant: Callable[[str], bool]) -> None:
        for table in (self._group_get, self._sent_back, self._dead_letters):
            for key in [key for key in table if is_meant(key)]:
                del table[key]

    def _rates(self, tally: Tally) -> str:
        now = self._clock.monotonic()
        return " ".join(str(tally.rate(now, seconds)) for seconds in (10, 60, 600))


def _by_pair(table: Mapping[str, Tally]) -> list[tuple[str, str, Tally]]:
    found = []
    for key, tally in table.items():
        topic, _, group = key.partition("@")
        found.append((topic, group, tally))
    return found


class Mornings:
    """Totals as they stood at the last two midnights (UTC), which brokerStatus and clusterList subtract."""

    __slots__ = ("_day", "get_today", "get_yesterday", "put_today", "put_yesterday")

    def __init__(self) -> None:
        self._day = -1
        self.put_yesterday = self.put_today = 0
        self.get_yesterday = self.get_today = 0

    def roll(self, wall_ms: int, put_count: int, get_count: int) -> None:
        day = wall_ms // 86_400_000
        if self._day < 0:
            self._day = day
        elif day > self._day:
            self._day = day
            self.put_yesterday, self.put_today = self.put_today, put_count
            self.get_yesterday, self.get_today = self.get_today, get_count
