"""Which tests stay together when several workers share them (``-n 4 --dist loadgroup --no-loadscope-reorder``), and
which begin.

The names of tests decide, not xdist's marks: those have no effect with pytest 9.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

TOGETHER = (
    "tests/spark/",
    "tests/docs/test_pages.py",
    "tests/docs/test_examples.py",
    "tests/docs/test_wheel.py",
    "tests/integration/test_etcd_store.py",
    "tests/integration/test_init.py",
    "tests/integration/mqadmin/test_commands.py",
    "tests/integration/test_doctor.py",
)
"""What starts slowly, and once for all of its tests."""

WITH_SERVERS = ("tests/integration/", "tests/hostile/", "tests/deploy/", "tests/docs/")
LONG_COMPUTATIONS = ("tests/simulation/", "tests/property/")
QUICK = "tests/unit/"


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker all tests of a group."""

    def __init__(self, config: pytest.Config, log: Any, group_of: Callable[[str], str]) -> None:
        super().__init__(config, log)
        self._group_of = group_of

    def _split_scope(self, nodeid: str) -> str:
        return self._group_of(nodeid)


def group_of(nodeid: str) -> str:
    """The name of the group that a test belongs to."""
    for path in TOGETHER:
        if nodeid.startswith(path):
            return path
    return nodeid.partition("::")[0] if nodeid.startswith(QUICK) else nodeid


def turn(nodeid: str, *, is_slow: bool) -> int:
    """Tests of an earlier turn come first: what takes long, so that no worker is alone with it at the end; then what
    waits for servers. What only computes keeps all processors busy to the end."""
    if group_of(nodeid) in TOGETHER:
        return 0
    if is_slow:
        return 1
    if nodeid.startswith(WITH_SERVERS):
        return 2
    return 3 if nodeid.startswith(LONG_COMPUTATIONS) else 4
