from __future__ import annotations

import pytest

from cometmq.broker.broker_stats import FIFO, BrokerStats, PutTally, TopicPuts
from cometmq.testing.fake_clock import FakeClock


def ten_seconds(stats: BrokerStats, clock: FakeClock, count: int, *, times: int = 1) -> None:
    for _ in range(times):
        tally = stats.topic_put("T")
        tally.add_all([100] * count)
        clock.advance(10)
        stats.sample()


def test_a_steady_load_shows_in_every_window() -> None:
    clock = FakeClock()
    stats = BrokerStats(clock)
    ten_seconds(stats, clock, 50, times=60)
    view = stats.view("TOPIC_PUT_NUMS", "T")
    assert view is not None
    assert (view.minute.sum, view.minute.tps, view.minute.average) == (300, 5.0, 1.0)
    assert view.hour.sum == 3000
    assert view.day.sum == 3000
    sizes = stats.view("TOPIC_PUT_SIZE", "T")
    assert sizes is not None
    assert (sizes.minute.sum, sizes.minute.average) == (30_000, 100.0)


def test_the_past_leaves_the_windows_one_after_the_other() -> None:
    clock = FakeClock()
    stats = BrokerStats(clock)
    ten_seconds(stats, clock, 50, times=3)
    ten_seconds(stats, clock, 0, times=12)
    view = stats.view("TOPIC_PUT_NUMS", "T")
    assert view is not None
    assert (view.minute.sum, view.hour.sum, view.day.sum) == (0, 150, 150)


def test_rates_are_over_ten_sixty_and_six_hundred_seconds() -> None:
    clock = FakeClock()
    stats = BrokerStats(clock)
    ten_seconds(stats, clock, 50, times=60)
    ten_seconds(stats, clock, 100)
    ten, sixty, six_hundred = map(float, stats.put_tps().split())
    assert (ten, sixty) == (10.0, (5 * 50 + 100) / 60)
    assert six_hundred > 0


def test_unknown_names_and_keys_have_no_view() -> None:
    stats = BrokerStats(FakeClock(), cluster="C")
    stats.topic_put("T")
    stats.group_get("T", "g")
    assert stats.view("TOPIC_PUT_NUMS", "U") is None
    assert stats.view("TOPIC_PUT_WEIGHT", "T") is None
    assert stats.view("NOTHING_NUMS", "T") is None
    assert stats.view("GROUP_GET_SIZE", "T@g") is not None
    assert stats.view("BROKER_PUT_NUMS", "C") is not None


def test_what_one_topic_counts_is_told_without_a_look_at_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stats = BrokerStats(FakeClock())
    for number in range(100):
        stats.topic_put(f"topic-{number}").add(1)
    refreshed = []
    refresh = TopicPuts.refresh

    def counted(puts: TopicPuts) -> TopicPuts:
        refreshed.append(puts)
        return refresh(puts)

    monkeypatch.setattr(TopicPuts, "refresh", counted)
    assert stats.view("TOPIC_PUT_NUMS", "topic-7") is not None
    assert stats.view("GROUP_GET_NUMS", "topic-7@billing") is None
    assert len(refreshed) == 1


def test_the_total_survives_a_deleted_topic() -> None:
    clock = FakeClock()
    stats = BrokerStats(clock)
    ten_seconds(stats, clock, 50)
    stats.group_get("T", "g").count += 1
    stats.group_get("U", "g").count += 1
    stats.forget_topic("T")
    assert (stats.put.count, stats.put.size_bytes) == (50, 5000)
    assert stats.view("GROUP_GET_NUMS", "T@g") is None
    assert stats.view("GROUP_GET_NUMS", "U@g") is not None
    stats.forget_group("g")
    assert stats.view("GROUP_GET_NUMS", "U@g") is None


def test_slow_appends_are_counted_by_duration() -> None:
    stats = BrokerStats(FakeClock())
    stats.topic_put("T").add_all([1] * 10)
    stats.slow_put(7.5)
    stats.slow_put(30_000)
    assert stats.put_max_ms == 30_000
    text = stats.put_distribution()
    assert text.startswith("[<=0ms]:8 [0~10ms]:1 [10~50ms]:0 ")
    assert text.endswith(" [10s~]:1")


def test_mornings_hold_the_totals_of_the_last_two_midnights() -> None:
    clock = FakeClock(wall_ms=86_400_000 * 100)
    stats = BrokerStats(clock)
    ten_seconds(stats, clock, 5)
    clock.advance(86_400)
    ten_seconds(stats, clock, 7)
    assert (stats.mornings.put_yesterday, stats.mornings.put_today) == (0, 12)
    clock.advance(86_400)
    ten_seconds(stats, clock, 1)
    assert (stats.mornings.put_yesterday, stats.mornings.put_today) == (12, 13)


def test_messages_are_counted_by_size_however_they_come() -> None:
    one, other = PutTally(), PutTally()
    sizes = [1, 1024, 1025, 4096, 4097, 524_288, 1_048_577, 4_194_304, 4_194_305]
    one.add_all(sizes)
    for size in sizes:
        other.add(size)
    assert one.by_size == other.by_size == [2, 2, 2, 0, 1, 1, 1]
    assert (one.count, one.size_bytes) == (other.count, other.size_bytes) == (9, sum(sizes))


def test_kinds_of_messages_make_up_a_topic() -> None:
    stats = BrokerStats(FakeClock())
    stats.topic_put("T").add(10)
    stats.topic_put("T", FIFO).add(5)
    assert (stats.puts["T"].refresh().count, stats.put.size_bytes) == (2, 15)
    view = stats.view("TOPIC_PUT_NUMS", "T")
    assert view is not None
    assert view.minute.sum == 2
    stats.dead_letter("T", "g")
    [(topic, group, tally)] = stats.dead_letters()
    assert (topic, group, tally.count) == ("T", "g", 1)
    stats.forget_group("g")
    assert list(stats.dead_letters()) == []
