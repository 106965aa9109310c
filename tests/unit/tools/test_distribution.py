"""How ``make test`` gives tests to its workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.distribution import (
    LONG_COMPUTATIONS,
    QUICK,
    TOGETHER,
    WITH_SERVERS,
    Distribution,
    group_of,
    turn,
)

ROOT = Path(__file__).parents[3]


def test_what_is_slow_to_start_starts_in_one_worker() -> None:
    spark = ("tests/spark/test_sink.py::TestOnce::test_a", "tests/spark/test_fetch.py::test_b")
    assert {group_of(test) for test in spark} == {"tests/spark/"}
    alone = "tests/integration/test_kill.py::test_a[SYNC_FLUSH]"
    assert group_of(alone) == alone


def test_what_takes_long_comes_first() -> None:
    order = [
        turn("tests/spark/test_sink.py::test_a", is_slow=False),
        turn("tests/integration/test_kill.py::test_a", is_slow=True),
        turn("tests/integration/test_tls.py::test_a", is_slow=False),
        turn("tests/simulation/test_elections.py::test_a", is_slow=False),
        turn("tests/unit/model/test_bloom.py::test_a", is_slow=False),
    ]
    assert order == sorted(set(order))


def test_what_is_named_is_there() -> None:
    named = (*TOGETHER, *WITH_SERVERS, *LONG_COMPUTATIONS, QUICK)
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_test_relies_on_a_mark_without_effect() -> None:
    mark = "xdist" + "_group"
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if mark in path.read_text()]
    assert not marked, f"{mark} has no effect: name the file in TOGETHER of tests/distribution.py"


def test_it_is_the_scheduler_of_a_run(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that xdist makes itself, from marks, have no effect with some versions of pytest."""
    config = pytestconfig
    monkeypatch.setattr(config.option, "dist", "loadgroup")
    monkeypatch.setattr(config.option, "tx", ["2*popen"])
    scheduler = config.hook.pytest_xdist_make_scheduler(config=config, log=None)
    assert isinstance(scheduler, Distribution)
    assert scheduler._split_scope("tests/spark/test_x.py::test_a") == "tests/spark/"
