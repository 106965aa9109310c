"""Groups and reports for tests, in one line each."""

from __future__ import annotations

from collections.abc import Iterable

from cometmq.controller.group import Group, Living, Member, Report


def group_of(
    members: int = 3,
    *,
    master: int | None = None,
    in_sync: Iterable[int] = (),
    epoch: int = 0,
    set_epoch: int = 0,
    began: int = 0,
) -> Group:
    """Brokers 1 to ``members`` of bk."""
    group = Group(
        cluster="C",
        broker_name="bk",
        next_id=members + 1,
        members={
            i: Member(address=f"10.0.0.{i}:10911", check_code=f"10.0.0.{i}:10911;{i}")
            for i in range(1, members + 1)
        },
        master_id=master,
        master_epoch=epoch,
        sync_state_set=frozenset(in_sync),
        sync_state_set_epoch=set_epoch,
        began_epoch=began,
    )
    assert group.fault() is None, group.fault()
    return group


def alive(*ids: int, doubtful: Iterable[int] = (), **reports: Report) -> Living:
    """Brokers that are alive with an empty log, and others as ``b2=Report(..)``."""
    return Living(
        reports={
            **{i: Report(epoch=-1, max_offset=0) for i in ids},
            **{int(name[1:]): report for name, report in reports.items()},
        },
        doubtful=frozenset(doubtful),
    )
