from __future__ import annotations

import logging

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import silence_seconds
from cometmq.namesrv.membership import Membership
from cometmq.namesrv.namesrv_config import NamesrvConfig
from cometmq.namesrv.registration import MinIdChange, Registration
from cometmq.namesrv.route_table import RouteTable


class HandClock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)


class Line:
    """A connection as far as membership sees it."""

    peer = "127.0.0.1:1"
    closed: str | None = None

    def close(self, reason: str) -> None:
        self.closed = reason


class Setting:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.table = RouteTable()
        self.changes: list[MinIdChange] = []
        self.config = LiveConfig(NamesrvConfig(), SystemFiles())
        self.membership = Membership(
            self.table, self.config, self.clock, self.changes.append, lambda broker: False
        )

    def register(self, line: Line, *, silence: float = 120.0, address: str = "h:1") -> None:
        self.membership.register(
            Registration(
                cluster="C",
                broker_name="a",
                broker_id=0,
                address=address,
                ha_address="h:2",
                topics={name: TopicConfig(topic_name=name) for name in ("T", "U")},
                version=DataVersion(counter=1),
                silence_seconds=silence,
                connection=line,
            )
        )

    def pass_time(self, seconds: float) -> None:
        """In steps of the usual scan."""
        while seconds > 0:
            self.clock.now += min(seconds, 10.0)
            seconds -= 10.0
            self.membership.scan()


def test_a_broker_silent_for_two_minutes_is_removed_and_cut_off() -> None:
    setting, line = Setting(), Line()
    setting.register(line)
    setting.pass_time(120.0)
    assert setting.table.topics() == ["T", "U"]
    setting.pass_time(10.0)
    assert setting.table.topics() == []
    assert line.closed is not None


def test_a_sign_of_life_keeps_a_broker() -> None:
    setting = Setting()
    setting.register(Line())
    setting.pass_time(110.0)
    setting.table.liveness.touch("C", "h:1", setting.clock.now)
    setting.pass_time(110.0)
    assert setting.table.topics() == ["T", "U"]


def test_a_broker_may_ask_for_a_shorter_patience() -> None:
    setting = Setting()
    setting.register(Line(), silence=silence_seconds(10_000))
    setting.pass_time(20.0)
    assert setting.table.topics() == []
    assert silence_seconds(None) == silence_seconds(-5) == 120.0


def test_a_scan_that_comes_far_too_late_removes_nobody_at_first() -> None:
    setting = Setting()
    setting.register(Line())
    setting.clock.now += 3600.0
    setting.membership.scan()
    assert setting.table.topics() == ["T", "U"]
    setting.pass_time(10.0)
    assert setting.table.topics() == []


def test_a_lost_connection_removes_its_brokers_at_once() -> None:
    setting, line = Setting(), Line()
    setting.register(line)
    setting.membership.connection_lost(Line())
    assert setting.table.topics() == ["T", "U"]
    setting.membership.connection_lost(line)
    assert setting.table.topics() == []


def test_the_late_end_of_an_old_connection_does_not_remove_a_broker_that_came_back() -> None:
    setting, old, new = Setting(), Line(), Line()
    setting.register(old)
    setting.register(new)
    setting.membership.connection_lost(old)
    assert setting.table.topics() == ["T", "U"]


def test_comings_and_goings_are_one_log_line_each(caplog: pytest.LogCaptureFixture) -> None:
    setting, line = Setting(), Line()
    with caplog.at_level(logging.INFO, "cometmq.namesrv"):
        setting.register(line)
        setting.register(Line())
        setting.membership.unregister("C", "a", "h:1", line)
        setting.membership.unregister("C", "a", "h:1", line)
    assert [record.getMessage().split(" cluster")[0] for record in caplog.records] == [
        "broker registered",
        "broker removed",
    ]


def test_topics_that_are_left_out_are_told_once_a_version(
    caplog: pytest.LogCaptureFixture,
) -> None:
    setting, line = Setting(), Line()
    setting.config.update({"topicQueuesMax": "15"})
    for _ in range(3):
        setting.register(line)
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert told == [
        "topics left out name=a address=h:1 count=2 first=T reason=not 0 to 15 queues (topicQueuesMax)"
    ]
