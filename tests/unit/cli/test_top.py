"""What `cometmq top` shows: frames from snapshots."""

from __future__ import annotations

from cometmq.admin import BrokerFigures, GroupSummary, Place
from cometmq.cli.top.frame import frame
from cometmq.cli.top.snapshot import BrokerNow, Replicas, Snapshot


def _broker(name: str, *, put: int | None, replicas: Replicas | None = None) -> BrokerNow:
    figures = {
        "brokerVersionDesc": "V4_9_8",
        "putTps": "7.5 0 0",
        "getTransferredTps": "3.0 0 0",
        "msgPutTotalTodayNow": str(put),
        "msgGetTotalTodayNow": "50",
        "sendThreadPoolQueueHeadWaitTimeMills": "4",
        "commitLogDiskRatio": "0.456",
        "remainHowManyDataToFlush": "1.5 KiB",
    }
    return BrokerNow(
        place=Place(cluster="c", broker_name=name, broker_id=0, address="10.0.0.1:10911"),
        figures=None if put is None else BrokerFigures(figures),
        replicas=replicas,
    )


def _group(name: str, lag: int, members: int = 1) -> GroupSummary:
    return GroupSummary(
        group=name,
        members=members,
        version=409,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        tps=1.25,
        lag=lag,
        topics={},
    )


def _snapshot(at: float, *brokers: BrokerNow, groups: tuple[GroupSummary, ...] = ()) -> Snapshot:
    return Snapshot(at=at, brokers=brokers, groups=groups, failed={})


def _cells(line: str) -> list[str]:
    return line.split()


def test_the_first_view_has_the_brokers_own_averages() -> None:
    now = _snapshot(10, _broker("a", put=100), groups=(_group("billing", 7),))
    lines = frame("title", None, now, width=120, height=40)
    assert lines[0] == "title"
    assert _cells(lines[3]) == [
        *("a", "0", "10.0.0.1:10911", "V4_9_8", "7.5", "3.0", "4", "46%", "1.5", "KiB", "-", "-")
    ]
    assert _cells(lines[-1]) == ["billing", "1", "1.2", "7", "-"]


def test_later_views_have_what_happened_meanwhile() -> None:
    replicas = Replicas(following=2, in_sync=1, behind_bytes=2048)
    before = _snapshot(10, _broker("a", put=100), groups=(_group("billing", 100),))
    now = _snapshot(
        12, _broker("a", put=300, replicas=replicas), groups=(_group("billing", 60, members=0),)
    )
    lines = frame("title", before, now, width=120, height=40)
    assert _cells(lines[3])[4:6] == ["100.0", "0.0"]
    assert _cells(lines[3])[-2:] == ["1/2", "2"]
    assert _cells(lines[-1]) == ["billing", "offline", "1.2", "60", "-20.0"]


def test_a_broker_that_was_started_anew_does_not_count_backwards() -> None:
    before, now = _snapshot(10, _broker("a", put=100)), _snapshot(12, _broker("a", put=3))
    assert _cells(frame("t", before, now, width=120, height=40)[3])[4] == "7.5"


def test_a_broker_that_does_not_answer_is_shown_with_the_reason() -> None:
    now = Snapshot(
        at=1, brokers=[_broker("a", put=None)], groups=[], failed={"10.0.0.1:10911": "no answer"}
    )
    lines = frame("t", None, now, width=120, height=40)
    assert lines[3].endswith("no answ…")
    assert lines[4] == "  10.0.0.1:10911: no answer"


def test_what_does_not_fit_is_left_out_with_the_least_lag() -> None:
    groups = tuple(_group(f"group-{number:02}", number) for number in range(50))
    lines = frame("t", None, _snapshot(1, _broker("a", put=1), groups=groups), width=60, height=16)
    assert len(lines) == 16
    assert max(map(len, lines)) <= 60
    shown = [_cells(line)[0] for line in lines if line.startswith("group-")]
    assert shown[0] == "group-49"
    assert lines[-1] == f"and {50 - len(shown)} groups with less lag"


def test_long_names_are_cut_to_the_terminal() -> None:
    now = _snapshot(1, groups=(_group("g" * 100, 1),))
    line = frame("t", None, now, width=80, height=20)[-1]
    assert "…" in line
    assert line.endswith("-")
