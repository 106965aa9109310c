"""Who becomes master of a group. No I/O and no time.

A replica of the sync state set, as long as one of them is alive or may be. One outside of it becomes master only if
``enableElectUncleanMaster`` is set or an operator names it; what only the set had is lost then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

from cometmq.controller.group import EPOCH_MAX, Decision, Group, Living, Report
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRequest:
    """Attributes:
    broker_id: the broker that asks, or that an operator names; None if the controller itself finds no master alive.
    is_designated: an operator wants this one and no other.
    """

    broker_id: int | None = None
    is_designated: bool = False


class Verdict(Enum):
    ELECTED = auto()
    STILL_MASTER = auto()
    """The old master is alive."""
    NO_CANDIDATE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    verdict: Verdict
    reason: str
    is_unclean: bool = False


def elect(
    group: Group | None, request: ElectionRequest, living: Living, *, unclean_allowed: bool
) -> Decision[Election]:
    """Raises Refused for a group or a broker that is not registered."""
    if group is None or not group.members:
        raise _unregistered("Broker hasn't been registered")
    if request.broker_id is not None and request.broker_id not in group.members:
        remark = f"BrokerId: {request.broker_id} hasn't been registered in broker-set: {group.broker_name}"
        if request.is_designated:
            # An operator's mistake. To the other code brokers answer by registering.
            raise Refused(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, remark, ext={})
        raise _unregistered(remark)
    if group.is_new:
        return _first(group, request, living)
    if (newest := living.newest_epoch) > group.master_epoch:
        return _of_old_copy(group, request, living, newest)
    if request.is_designated:
        assert request.broker_id is not None
        return _designated(group, request.broker_id, living)
    if living.may_include(group.master_id):
        return _still_master(group)
    if unheard := group.sync_state_set & living.doubtful:
        # It may have more than those that are heard from. This lasts a few seconds after the controller's start.
        return _no_change(group, f"in-sync replicas {sorted(unheard)} may be alive")
    in_sync = {i: report for i, report in living.reports.items() if i in group.sync_state_set}
    if in_sync:
        reason = f"has the most of {len(in_sync)} in-sync replicas alive"
        return _elected(group, _best(in_sync), living, reason)
    if not unclean_allowed or not living.reports:
        return _nobody(group, request, living)
    return _elected(
        group,
        _best(living.reports),
        living,
        f"no in-sync replica is alive, has the most of {len(living.reports)} others (enableElectUncleanMaster)",
        is_unclean=True,
    )


def _first(group: Group, request: ElectionRequest, living: Living) -> Decision[Election]:
    """The one that asks, unless another one alive has more: a controller may have lost its memory."""
    asking = request.broker_id
    if asking is None or (request.is_designated and asking not in living.reports):
        return _no_change(group, "the group has had no master yet, and none of its brokers asks")
    if request.is_designated:
        return _elected(group, asking, living, "named by an operator, the first of its group")
    known = {asking: Report(), **living.reports}
    best = max(known, key=lambda i: (known[i].log, i == asking, -known[i].priority))
    return _elected(group, best, living, "the first of its group")


def _of_old_copy(
    group: Group, request: ElectionRequest, living: Living, newest: int
) -> Decision[Election]:
    """Brokers have seen elections that are not known here: the memory is an old copy, and the set may have changed."""
    reason = f"the decisions are an old copy: epoch {group.master_epoch}, a broker has {newest}"
    wanted = request.broker_id if request.is_designated else None
    if wanted is None or wanted not in living.reports:
        return _no_change(
            group, f"{reason}; an operator has to name who has the most (electMaster)"
        )
    return _elected(group, wanted, living, f"named by an operator; {reason}", is_unclean=True)


def _designated(group: Group, wanted: int, living: Living) -> Decision[Election]:
    if wanted == group.master_id and living.may_include(wanted):
        return _still_master(group)
    if wanted not in living.reports:
        return _no_change(group, f"broker {wanted} is not alive")
    if wanted in group.sync_state_set:
        return _elected(group, wanted, living, "named by an operator")
    if others := sorted(filter(living.may_include, group.sync_state_set)):
        return _no_change(group, f"broker {wanted} is not in sync; in sync and alive: {others}")
    return _elected(
        group,
        wanted,
        living,
        "named by an operator, no in-sync replica is alive",
        is_unclean=True,
    )


def _elected(
    group: Group, broker_id: int, living: Living, reason: str, *, is_unclean: bool = False
) -> Decision[Election]:
    # Brokers know later epochs than the controller if its memory was lost or is an old copy.
    master_epoch = next_epoch(max(group.master_epoch, living.newest_epoch))
    changed = replace(
        group,
        master_id=broker_id,
        master_epoch=master_epoch,
        sync_state_set=frozenset({broker_id}),
        sync_state_set_epoch=next_epoch(group.sync_state_set_epoch),
    )
    return Decision(
        group=changed,
        answer=Election(verdict=Verdict.ELECTED, reason=reason, is_unclean=is_unclean),
        line=f"master elected name={group.broker_name} id={broker_id}"
        f" address={group.members[broker_id].address} before={group.master_id} epoch={master_epoch}"
        f" set_before={sorted(group.sync_state_set)} unclean={is_unclean} reason={reason}",
    )


def _nobody(group: Group, request: ElectionRequest, living: Living) -> Decision[Election]:
    alive = ", ".join(map(str, sorted(living.reports))) or "none"
    reason = f"in sync: {sorted(group.sync_state_set)}, alive: {alive}"
    if request.broker_id is not None or group.master_id is None:
        return _no_change(group, reason)
    # Whoever the master was, from now on it cannot change the set, and has to ask before it goes on.
    return Decision(
        group=without_master(group),
        answer=Election(verdict=Verdict.NO_CANDIDATE, reason=reason),
        line=f"master removed name={group.broker_name} id={group.master_id}"
        f" epoch={group.master_epoch + 1} reason=not alive, and nobody may follow it; {reason}",
    )


def without_master(group: Group) -> Group:
    assert group.master_id is not None
    return replace(group, master_id=None, master_epoch=next_epoch(group.master_epoch))


def next_epoch(epoch: int) -> int:
    if epoch >= EPOCH_MAX:
        raise Refused(ResponseCode.SYSTEM_ERROR, "there is no epoch left: two billion were used")
    return epoch + 1


def _no_change(group: Group, reason: str) -> Decision[Election]:
    return Decision(group=group, answer=Election(verdict=Verdict.NO_CANDIDATE, reason=reason))


def _still_master(group: Group) -> Decision[Election]:
    reason = (
        f"The old master {group.master_id} is still alive, not need to elect new master"
        f" for broker {group.broker_name}"
    )
    return Decision(group=group, answer=Election(verdict=Verdict.STILL_MASTER, reason=reason))


def _best(reports: Mapping[int, Report]) -> int:
    return max(
        reports,
        key=lambda broker_id: (reports[broker_id].log, -reports[broker_id].priority, -broker_id),
    )


def _unregistered(remark: str) -> Refused:
    return Refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark, ext={})
