"""Which tests stay together in one of several workers, and which begin.

Tests that look at one run of a program, or share servers that are slow to start, belong together. Long ones begin, so
that no worker is left alone with one at the end.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from .features import JAVA_VERSIONS

ALONE = frozenset(
    {
        "test_controller.py",
        "test_delay_exchange.py",
        "test_java_fail_over.py",
        "test_java_scaling.py",
        "test_mixed_controllers.py",
        "test_move.py",
        "test_mqadmin_replication.py",
        "test_own_mqadmin.py",
        "test_replication.py",
        "test_sql92_oracle.py",
        "test_store_exchange.py",
        "test_transaction_exchange.py",
    }
)
"""Files whose tests share nothing."""

BY_CLIENT = frozenset(
    {
        "test_java_client.py",
        "test_java_expressions.py",
        "test_java_later.py",
        "test_java_replays.py",
        "test_java_transactions.py",
    }
)
"""Files whose tests share the runs of a client of one version."""

LONG = (
    "test_move.py",
    "test_java_client.py",
    "test_controller.py",
    "test_pop_exchange.py",
    "test_mixed_clusters.py",
    "test_timer_exchange.py",
    "test_transaction_exchange.py",
    "test_java_fail_over.py",
    "test_admin_library.py",
    "test_own_mqadmin.py",
    "test_delay_exchange.py",
    "test_user_accounts.py",
    "test_push_consumer.py",
    "test_mqadmin_replication.py",
    "test_mixed_controllers.py",
    "test_store_exchange.py",
    "test_mqadmin.py",
    "test_chaos.py",
    "test_plain_accounts.py",
    "test_mqadmin_controller.py",
    "test_replication.py",
    "test_java_replays.py",
    "test_java_later.py",
    "test_java_pop.py",
    "test_extended_queue_exchange.py",
    "test_java_scaling.py",
    "test_java_transactions.py",
    "test_java_expressions.py",
    "test_trace.py",
)
"""Files with the groups of tests that take the longest, the longest first."""


def group_of(nodeid: str) -> str:
    """The name of the group that a test belongs to; all of a group go to one worker."""
    path, _, test = nodeid.partition("::")
    file = PurePosixPath(path).name
    if file in ALONE:
        return nodeid
    if file in BY_CLIENT:
        for version in JAVA_VERSIONS:
            if version in test:
                return f"{path} {version}"
    return path


def rank(file: str) -> int:
    """Tests of a lower rank come first."""
    return LONG.index(file) if file in LONG else len(LONG)
