"""What is measured, as plain values: one ``Case`` for each row of the table, and the goals some rows have.

A case names the arguments of the load program (``benchmarks/load/load.c``) and the broker set-up it runs on. Brokers of
one set-up serve all its cases, because a Java broker is fast only after a minute of load.
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OURS = "cometmq"
RIVAL = "rocketmq-4.9.7"
SYSTEMS = (OURS, RIVAL, "rocketmq-5.5.0")

BACKLOG_TOPIC = "Backlog"
BACKLOG_QUEUES = 8
BACKLOG_MESSAGES = 160_000
MARKED_TOPIC = "Marked"
"""Where one message in ten matches the filters."""
PULLED_MESSAGES = 32
FILTERS = ("tag", "sql")
MANY_TOPIC = "Many"
MANY_TOPICS = 10_000
PEAK_CASE = "send-1k-4x64"


class Setup(enum.StrEnum):
    """How the brokers of a case are configured."""

    ASYNC = "async"
    BATCHES = "batches"
    """As ASYNC, with an empty store: sends fill tens of gigabytes, and a full disk is refused."""
    PACED = "paced"
    """The same, for latencies."""
    SYNC = "sync"
    TOPICS = "topics"
    ALONE = "alone"
    """ASYNC_MASTER without a slave, in turns with those that have one."""
    COPIED = "copied"
    """ASYNC_MASTER with one slave."""
    COPIED_SYNC = "copied-sync"
    """SYNC_MASTER with one slave: a send is answered when the slave has it, too."""
    OPEN = "open"
    """Without accounts, in turns with those that have some."""
    GUARDED = "guarded"
    """With accounts (aclEnable): every send is signed, and its account may publish to any topic."""

    @property
    def has_slave(self) -> bool:
        return self in (Setup.COPIED, Setup.COPIED_SYNC)


SIDE_BY_SIDE = (
    (Setup.ASYNC,),
    (Setup.BATCHES,),
    (Setup.PACED,),
    (Setup.SYNC,),
    (Setup.TOPICS,),
    (Setup.ALONE, Setup.COPIED, Setup.COPIED_SYNC),
    (Setup.OPEN, Setup.GUARDED),
)
"""Set-ups whose brokers are up at the same time and take turns, because their figures are compared with each other: the
speed of a shared machine changes within minutes."""


class Pace(enum.Enum):
    """How the rate of a latency case is chosen, from what PEAK_CASE gave."""

    QUARTER_OF_OURS = "a quarter of our maximum"
    HALF_OF_OWN = "half of its own maximum"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of the load program's result, such as ``receive_us.p99``, and how the table calls it."""

    path: str
    key: str = ""
    label: str = ""
    unit: str = "messages/s"
    lower_is_better: bool = False

    def of(self, result: dict[str, Any]) -> float:
        value: Any = result
        for key in self.path.split("."):
            value = value[key]
        return float(value)


THROUGHPUT = (Metric("per_second"),)
LATENCY = (
    Metric("receive_us.p50", "p50", "send to receive, p50,", "us", lower_is_better=True),
    Metric("receive_us.p99", "p99", "send to receive, p99,", "us", lower_is_better=True),
    Metric("receive_us.p999", "p99.9", "send to receive, p99.9,", "us", lower_is_better=True),
    Metric("reply_us.p99", "reply p99", "send to reply, p99,", "us", lower_is_better=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One load; it fills one row of the table for each of its metrics."""

    name: str
    title: str
    mode: str
    arguments: tuple[str, ...]
    metrics: tuple[Metric, ...] = THROUGHPUT
    setup: Setup = Setup.ASYNC
    pace: Pace | None = None
    is_quick: bool = False

    def row_name(self, metric: Metric) -> str:
        return f"{self.name} {metric.key}".rstrip()

    def row_title(self, metric: Metric) -> str:
        return f"{metric.label} {self.title}".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Ours divided by the reference must be at least (rows where lower is better: at most) this."""

    row: str
    ratio: float
    against_row: str = ""
    """Another row of our own, in place of RIVAL's figure in the same row."""
    is_rivals_too: bool = False
    """And ours must be at least what RIVAL keeps of its own figure in that other row."""
    shows_rivals: bool = False
    """What RIVAL keeps is told beside, and not judged."""


GOALS = (
    Goal(row="send-1k-4x64", ratio=3.0),
    Goal(row="send-1k-4x256", ratio=2.5),
    Goal(row="send-1k-64x1", ratio=1.8),
    Goal(row="send-128-4x64", ratio=3.5),
    Goal(row="send-128-4x256", ratio=3.0),
    Goal(row="send-128-64x1", ratio=1.8),
    Goal(row="batch32-128", ratio=1.5),
    Goal(row="batch32-1k", ratio=1.5),
    Goal(row="pull-1k-1", ratio=3.0),
    Goal(row="pull-1k-8", ratio=2.0),
    Goal(row="pull-1k-8-tag", ratio=3.0),
    Goal(row="pull-1k-8-sql", ratio=3.0),
    Goal(row="sync-1k-4x64", ratio=1.5),
    Goal(row="latency-quarter p99", ratio=1.0),
    Goal(row="latency-half p99", ratio=0.5),
    Goal(row="topics-10000", ratio=0.9, against_row="topics-1"),
    Goal(row="copied-1k-4x64", ratio=0.85, against_row="copied-not-1k-4x64", is_rivals_too=True),
    Goal(
        row="copied-sync-1k-4x64", ratio=0.6, against_row="copied-not-1k-4x64", is_rivals_too=True
    ),
    Goal(row="copied-sync-latency p99", ratio=1.0),
    Goal(row="guarded-1k-4x64", ratio=0.9, against_row="guarded-not-1k-4x64", shows_rivals=True),
    Goal(row="guarded-1k-64x1", ratio=0.9, against_row="guarded-not-1k-64x1", shows_rivals=True),
)


def is_judged(case: Case) -> bool:
    """Whether a goal looks at a row of this case."""
    rows = {case.row_name(metric) for metric in case.metrics}
    return any(goal.row in rows or goal.against_row in rows for goal in GOALS)


def all_cases() -> list[Case]:
    """In the order in which they run. Pulls first: behind gigabytes of sends a backlog counts as being on disk, and
    RocketMQ gives 8 messages of it to a pull instead of 32."""
    return [
        *_pulls(),
        *_sends(),
        *_batches(),
        *_latencies(),
        *_synchronous(),
        *_topics(),
        *_copied(),
        *_guarded(),
    ]


def chosen(cases: Sequence[Case], patterns: Sequence[str], *, quick: bool) -> list[Case]:
    """The cases that match a shell pattern; without patterns all, or those marked as quick.

    What a case takes its rate from or is judged by comes along with it.
    """
    if not patterns:
        return [case for case in cases if case.is_quick or not quick]
    matching = {
        case.name
        for case in cases
        if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in patterns)
    }
    matching |= {goal.against_row for goal in GOALS if goal.row in matching}
    if any(case.name in matching and case.pace for case in cases):
        matching.add(PEAK_CASE)
    return [case for case in cases if case.name in matching]


def _sends() -> list[Case]:
    quick = {"send-128-4x64", "send-1k-4x64", "send-1k-64x1"}
    return [
        _send(f"send-{size}-{connections}x{in_flight}", body, connections, in_flight, quick)
        for size, body in (("128", 128), ("1k", 1024))
        for connections, in_flight in ((4, 1), (4, 16), (4, 64), (4, 256), (64, 1))
    ]


def _send(name: str, body: int, connections: int, in_flight: int, quick: set[str]) -> Case:
    return Case(
        name=name,
        title=f"send {_size(body)}, {connections} x {in_flight} in flight",
        mode="send",
        arguments=_flags(body=body, connections=connections, in_flight=in_flight),
        is_quick=name in quick,
    )


def _batches() -> list[Case]:
    return [
        Case(
            name=f"batch32-{size}",
            title=f"send batches of 32 x {_size(body)}, 4 x 16 in flight",
            mode="send",
            arguments=_flags(body=body, connections=4, in_flight=16, batch=32),
            setup=Setup.BATCHES,
            is_quick=body == 1024,
        )
        for size, body in (("128", 128), ("1k", 1024))
    ]


def _pulls() -> list[Case]:
    one = _pull("pull-1k-1", "1 connection", 1)
    awake = _pull("pull-1k-1-awake", "1 connection that never sleeps", 1, "--awake")
    many = _pull(f"pull-1k-{BACKLOG_QUEUES}", f"{BACKLOG_QUEUES} connections", BACKLOG_QUEUES)
    return [one, awake, many, _filtered("tag", "a tag"), _filtered("sql", "SQL92")]


def _pull(name: str, by: str, connections: int, *flags: str) -> Case:
    return Case(
        name=name,
        title=f"pull a backlog of 1 KB, {by}",
        mode="pull",
        arguments=(
            *_flags(body=1024, connections=connections, queues=connections),
            *("--topic", BACKLOG_TOPIC),
            *flags,
        ),
        is_quick=True,
    )


def _filtered(kind: str, by: str) -> Case:
    return Case(
        name=f"pull-1k-{BACKLOG_QUEUES}-{kind}",
        title=f"pull one message in ten of 1 KB, by {by}, {BACKLOG_QUEUES} connections",
        mode="pull",
        arguments=(
            *_flags(body=1024, connections=BACKLOG_QUEUES, queues=BACKLOG_QUEUES),
            *("--topic", MARKED_TOPIC, "--filter", kind),
        ),
    )


def _latencies() -> list[Case]:
    return [
        Case(
            name=f"latency-{name}",
            title=f"at {pace.value}",
            mode="latency",
            arguments=_flags(body=1024, connections=4, queues=4, receivers=4),
            metrics=LATENCY,
            setup=Setup.PACED,
            pace=pace,
            is_quick=pace is Pace.QUARTER_OF_OURS,
        )
        for name, pace in (("quarter", Pace.QUARTER_OF_OURS), ("half", Pace.HALF_OF_OWN))
    ]


def _synchronous() -> list[Case]:
    return [
        Case(
            name=f"sync-1k-{connections}x{in_flight}",
            title=f"SYNC_FLUSH, send 1 KB, {connections} x {in_flight} in flight",
            mode="send",
            arguments=_flags(body=1024, connections=connections, in_flight=in_flight),
            setup=Setup.SYNC,
        )
        for connections, in_flight in ((4, 1), (4, 64), (64, 1))
    ]


def _topics() -> list[Case]:
    """One topic and many at the same brokers, one right after the other: only these two can be compared."""
    one = Case(
        name="topics-1",
        title=f"send 1 KB to one of {MANY_TOPICS:,} topics, 4 x 64 in flight",
        mode="send",
        arguments=_flags(body=1024, connections=4, in_flight=64),
        setup=Setup.TOPICS,
    )
    many = Case(
        name="topics-10000",
        title=f"send 1 KB to {MANY_TOPICS:,} topics, 4 x 64 in flight",
        mode="send",
        # They are in the broker's topic table before it starts: RocketMQ rewrites the table for each one created.
        arguments=(
            *_flags(body=1024, connections=4, in_flight=64, queues=1, topics=MANY_TOPICS),
            "--topic",
            MANY_TOPIC,
            "--no-create",
        ),
        setup=Setup.TOPICS,
    )
    return [one, many]


def _copied() -> list[Case]:
    flags = _flags(body=1024, connections=4, in_flight=64)
    return [
        Case(
            name="copied-not-1k-4x64",
            title="ASYNC_MASTER without a slave, in turns with those that have one",
            mode="send",
            arguments=flags,
            setup=Setup.ALONE,
        ),
        Case(
            name="copied-1k-4x64",
            title="ASYNC_MASTER with a slave, send 1 KB, 4 x 64 in flight",
            mode="send",
            arguments=flags,
            setup=Setup.COPIED,
        ),
        Case(
            name="copied-sync-1k-4x64",
            title="SYNC_MASTER with a slave, send 1 KB, 4 x 64 in flight",
            mode="send",
            arguments=flags,
            setup=Setup.COPIED_SYNC,
        ),
        Case(
            name="copied-sync-latency",
            title="SYNC_MASTER with a slave, at a quarter of our maximum",
            mode="latency",
            arguments=_flags(body=1024, connections=4, queues=4, receivers=4),
            metrics=(
                Metric("reply_us.p50", "p50", "send to reply, p50,", "us", lower_is_better=True),
                Metric("reply_us.p99", "p99", "send to reply, p99,", "us", lower_is_better=True),
            ),
            setup=Setup.COPIED_SYNC,
            pace=Pace.QUARTER_OF_OURS,
        ),
    ]


def _guarded() -> list[Case]:
    """What accounts cost."""
    return [
        Case(
            name=f"{name}-1k-{connections}x{in_flight}",
            title=f"{title}, send 1 KB, {connections} x {in_flight} in flight",
            mode="send",
            arguments=_flags(body=1024, connections=connections, in_flight=in_flight),
            setup=setup,
        )
        for connections, in_flight in ((4, 64), (64, 1))
        for name, title, setup in (
            ("guarded-not", "without accounts, in turns with the next", Setup.OPEN),
            ("guarded", "with accounts", Setup.GUARDED),
        )
    ]


def _flags(**values: int) -> tuple[str, ...]:
    return tuple(
        text for key, value in values.items() for text in (f"--{key.replace('_', '-')}", str(value))
    )


def _size(body: int) -> str:
    return f"{body // 1024} KB" if body >= 1024 else f"{body} B"
