"""What the dashboard computes from what servers tell: sums, ages, histories, sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.admin.servers.figures import BrokerFigures
from cometmq.admin.target import Place
from cometmq.base.errors import CometError
from cometmq.dashboard.watch.figures import lag_ages, slave_lag
from cometmq.dashboard.watch.history import REPEAT_MS, History
from cometmq.dashboard.watch.known import Fill
from cometmq.dashboard.watch.lags import sums_of
from cometmq.dashboard.watch.notes import ERROR, INFO, note, worst_first
from cometmq.dashboard.watch.snapshot import BrokerState, put_together
from cometmq.dashboard.watch.sweep import PER_ROUND, Sweep
from cometmq.dashboard.watch.trends import POINTS, Trends
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.stats import BrokerConsumeStats, ConsumeStats, OffsetLag
from cometmq.testing.fake_clock import FakeClock


def lag(end: int, position: int, consumed_ms: int = 0) -> OffsetLag:
    return OffsetLag(broker_offset=end, consumer_offset=position, last_timestamp=consumed_ms)


def told() -> BrokerConsumeStats:
    def queue(number: int) -> MessageQueue:
        return MessageQueue("a", number, "Orders")

    return BrokerConsumeStats(
        consume_stats_list=[
            {"x": [ConsumeStats(consume_tps=2.0, offset_table={queue(0): lag(10, 4, 500)})]},
            {
                "y": [
                    ConsumeStats(
                        consume_tps=1.0,
                        offset_table={queue(0): lag(10, 10, 900), queue(1): lag(5, 9)},
                    )
                ]
            },
        ]
    )


def state(name: str, broker_id: int = 0, log_end: int | None = None) -> BrokerState:
    place = Place(cluster="c", broker_name=name, broker_id=broker_id, address=f"{name}:{broker_id}")
    table = {} if log_end is None else {"commitLogMaxOffset": str(log_end)}
    return BrokerState(place=place, figures=BrokerFigures(table))


def test_sums_count_each_queue_once_and_no_lag_below_zero() -> None:
    sums = sums_of(told())
    assert sums.ends == {"Orders": 15}
    assert sums.groups["x"].topics["Orders"].lag == 6
    assert sums.groups["x"].topics["Orders"].consumed_ms == 500
    assert sums.groups["y"].topics["Orders"].lag == 0


def test_brokers_are_put_together() -> None:
    one, other = state("a"), state("b")
    one.topics = {"Orders": TopicConfig(topic_name="Orders", read_queue_nums=2)}
    other.topics = {"Orders": TopicConfig(topic_name="Orders", read_queue_nums=3)}
    one.lags = other.lags = sums_of(told())
    snapshot = put_together([one, other], [], 1000)
    assert snapshot.topics["Orders"].end == 30
    assert set(snapshot.topics["Orders"].by_broker) == {"a", "b"}
    assert (snapshot.groups["x"].lag, snapshot.groups["x"].tps) == (12, 4.0)
    assert snapshot.topics["Orders"].consumers == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Orders", "normal"),
        ("%RETRY%x", "retry"),
        ("%DLQ%x", "dead_letter"),
        ("rmq_sys_wheel_timer", "system"),
        ("TBW102", "system"),
        ("c", "system"),
        ("a", "system"),
        ("c_REPLY_TOPIC", "system"),
    ],
)
def test_kinds_of_topics(name: str, kind: str) -> None:
    assert put_together([state("a")], [], 0).kind_of(name) == kind


def test_the_age_of_what_comes_next() -> None:
    """A message that came just now to a group that was idle for days is not days old."""
    broker = state("a")
    broker.lags = sums_of(told())
    snapshot = put_together([broker], [], 10_000)
    assert lag_ages(snapshot, {"x": 9_000}) == {"x": 1_000}
    assert lag_ages(snapshot, {"x": 0}) == {"x": 9_500}
    assert lag_ages(snapshot, {}) == {"x": 9_500}


def test_how_far_a_slave_is() -> None:
    master, slave, mute = state("a", 0, 500), state("a", 1, 420), state("a", 2)
    snapshot = put_together([master, slave, mute], [], 0)
    assert slave_lag(snapshot, slave) == 80
    assert slave_lag(snapshot, mute) is None


def test_history_stores_changes_and_gives_the_largest_of_each_part(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db", keep_ms=3_600_000)
    for second in range(0, 600, 10):
        history.add(second * 1000, {"flat": 1.0, "up": float(second)})
    [flat, up, none] = history.read(["flat", "up", "none"], 0, 600_000, 6)
    assert [value for _, value in up] == [90.0, 190.0, 290.0, 390.0, 490.0, 590.0]
    assert [at_ms for at_ms, _ in flat] == [0, REPEAT_MS]
    assert none == []
    history.close()
    again = History(tmp_path / "history.db", keep_ms=3_600_000)
    assert len(again.read(["up"], 0, 600_000, 100)[0]) == 60
    again.prune(600_000 + 3_600_000)
    assert again.read(["up"], 0, 600_000, 100) == [[]]
    again.close()


def test_history_draws_no_slope_over_a_flat_part() -> None:
    history = History(None, keep_ms=3_600_000)
    history.add(0, {"lag": 0.0})
    history.add(100_000, {"lag": 0.0})
    history.add(200_000, {"lag": 50.0})
    [points] = history.read(["lag"], 0, 200_000, 1000)
    assert points == [(0, 0.0), (199_999, 0.0), (200_000, 50.0)]
    history.close()


def test_trends_keep_the_last_values_of_what_is_there() -> None:
    trends = Trends()
    for number in range(POINTS + 5):
        trends.add({"topic:a:tps": float(number), "group:b:lag": 1.0, "put_tps": 1.0})
    assert trends.of("topic:a:tps") == [float(number) for number in range(5, POINTS + 5)]
    trends.add({"topic:a:tps": 1.0})
    assert trends.of("group:b:lag") == []
    assert trends.of("put_tps") == []


async def test_a_sweep_is_bounded_and_gets_around() -> None:
    asked: list[str] = []

    async def ask(name: str) -> int:
        asked.append(name)
        if name == "broken":
            raise CometError("no")
        return len(asked)

    clock = FakeClock()
    sweep = Sweep(ask, clock)
    names = ["broken", *(f"n{number:03}" for number in range(3 * PER_ROUND))]
    for _ in range(4):
        asked.clear()
        await sweep.go(names, first=["n119"])
        assert len(asked) <= PER_ROUND
        assert "n119" in asked
        clock.advance(1.0)
    assert all(sweep.get(name) is not None for name in names if name != "broken")
    assert sweep.get("broken") is None
    await sweep.go(["n000"])
    assert sweep.get("n001") is None


async def test_a_sweep_lets_good_answers_rest() -> None:
    asked: list[str] = []

    async def ask(name: str) -> str:
        asked.append(name)
        return name

    clock = FakeClock()
    sweep = Sweep(ask, clock, lambda value: 30.0 if value == "offline" else 0.0)
    for seconds in (0.0, 10.0, 19.0, 1.0):
        clock.advance(seconds)
        await sweep.go(["offline", "online"])
    assert asked.count("online") == 4
    assert asked.count("offline") == 2


def test_a_topic_keeps_what_a_silent_broker_had() -> None:
    before = Fill(by_broker={"a": 8, "b": 12}, updated_ms=500)
    now = Fill(by_broker={"a": 9}, updated_ms=400)
    assert now.completed_by(before, {"b"}) == Fill(by_broker={"a": 9, "b": 12}, updated_ms=500)
    assert now.completed_by(before, {"c"}).by_broker == {"a": 9}
    assert now.completed_by(None, {"b"}) is now


def test_the_worst_of_many_problems_are_told_and_the_others_counted() -> None:
    many = [note(INFO, "definitions_differ", "#/", number, topic="x") for number in range(100)]
    bad = note(ERROR, "no_broker", "#/", 500)
    worst, left = worst_first(iter([*many, bad]), 3)
    assert [one.since_ms for one in worst] == [500, 0, 1]
    assert left == 98
    assert worst_first(iter([bad]), 3) == ([bad], 0)
