"""Ids of brokers, changes of the sync state set, and brokers to forget. No I/O and no time; elections: ``election``.

Each function takes a group as it is and returns the ``Decision``, or raises ``Refused`` with RocketMQ's code.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.controller.election import next_epoch, without_master
from cometmq.controller.group import (
    GROUPS_MAX,
    MEMBERS_MAX,
    NAME_CHARS_MAX,
    Decision,
    Group,
    Living,
    Member,
)
from cometmq.model.address import split_address
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

CHECK_CODE_CHARS_MAX: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SetChange:
    """A master's wish: the new set, and the epochs that the master takes for the present ones."""

    master_id: int
    master_epoch: int
    sync_state_set: frozenset[int]
    sync_state_set_epoch: int


def next_id(group: Group | None, cluster: str, broker_name: str) -> int:
    """The id that a broker without one may apply for."""
    check_name("clusterName", cluster)
    check_name("brokerName", broker_name)
    check_cluster(group, cluster)
    return 1 if group is None else group.next_id


def apply_id(
    group: Group | None,
    *,
    cluster: str,
    broker_name: str,
    applied_id: int,
    check_code: str,
    group_count: int,
) -> Decision[None]:
    """Give a broker the next id. Who asks again with its check code has it already.

    RocketMQ gives any free number, so also that of a broker that was forgotten; if that one comes back, two are one.
    """
    check_name("clusterName", cluster)
    check_name("brokerName", broker_name)
    check_cluster(group, cluster)
    address = check_code.partition(";")[0]
    _check_address("registerCheckCode", address)
    if len(check_code) > CHECK_CODE_CHARS_MAX:
        raise _bad(f"registerCheckCode must have at most {CHECK_CODE_CHARS_MAX} characters")
    if group is None:
        if group_count >= GROUPS_MAX:
            raise _full(f"the controller knows {GROUPS_MAX} broker-sets already")
        group = Group(cluster=cluster, broker_name=broker_name)
    owner = group.members.get(applied_id)
    if owner is not None and owner.check_code == check_code:
        return Decision(group=group, answer=None)
    if applied_id != group.next_id:
        raise Refused(
            ResponseCode.CONTROLLER_BROKER_ID_INVALID,
            f"Fail to apply brokerId: {applied_id} in broker-set: {broker_name}",
            ext={"clusterName": cluster, "brokerName": broker_name},
        )
    if len(group.members) >= MEMBERS_MAX:
        raise _full(f"broker-set {broker_name} has {MEMBERS_MAX} brokers already")
    member = Member(address=address, check_code=check_code)
    return Decision(
        group=replace(group, members={**group.members, applied_id: member}, next_id=applied_id + 1),
        answer=None,
        line=f"broker id given name={broker_name} id={applied_id} address={address}"
        " reason=it applied for the next one",
    )


def register(
    group: Group | None, *, cluster: str, broker_name: str, broker_id: int, address: str
) -> Decision[None]:
    """A broker has started, and is at this address.

    If it is the recorded master, it is master no longer: a crash may have cost it the end of its log, which another
    replica has. An election finds out who has most. RocketMQ lets it go on in the same epoch.
    """
    if group is None or broker_id not in group.members:
        raise Refused(
            ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
            f"BrokerId: {broker_id} hasn't been registered in broker-set: {broker_name}",
            ext={"clusterName": cluster, "brokerName": broker_name},
        )
    check_cluster(group, cluster)
    _check_address("brokerAddress", address)
    changed, told = group, []
    known = group.members[broker_id]
    if known.address != address:
        members = {**group.members, broker_id: replace(known, address=address)}
        changed = replace(changed, members=members)
        told.append(f"it has moved from {known.address}")
    if broker_id == group.master_id:
        changed = without_master(changed)
        told.append("the master has restarted, and is to be elected again")
    line = (
        f"broker registered name={broker_name} id={broker_id} address={address}"
        f" epoch={changed.master_epoch} reason={'; '.join(told)}"
    )
    return Decision(group=changed, answer=None, line=line if told else "")


def alter_sync_state_set(group: Group | None, change: SetChange, living: Living) -> Decision[Group]:
    """What a master asks for. The order of checks is RocketMQ's, since its brokers look at the code."""
    if group is None or not group.members:
        raise _set_refused(
            ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "Broker hasn't been registered"
        )
    new = change.sync_state_set
    if new == group.sync_state_set:
        raise _set_refused(
            ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
            "The newSyncStateSet is equal with oldSyncStateSet, no needed to update syncStateSet",
        )
    if change.master_id != group.master_id:
        raise _set_refused(
            ResponseCode.CONTROLLER_INVALID_MASTER,
            "Rejecting alter syncStateSet request because the current leader is:"
            f"{{{group.master_id}}}, not {{{change.master_id}}}",
        )
    if change.master_epoch != group.master_epoch:
        raise _set_refused(
            ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
            f"the master epoch is {group.master_epoch}, not {change.master_epoch}",
        )
    if change.sync_state_set_epoch != group.sync_state_set_epoch:
        raise _set_refused(
            ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
            f"the syncStateSet epoch is {group.sync_state_set_epoch}, not {change.sync_state_set_epoch}",
        )
    if unknown := new - group.members.keys():
        raise _set_refused(
            ResponseCode.CONTROLLER_INVALID_REPLICAS,
            f"Rejecting alter syncStateSet request because the replicas {_braced(unknown)} don't exist",
        )
    if dead := new - living.reports.keys():
        raise _set_refused(
            ResponseCode.CONTROLLER_BROKER_NOT_ALIVE,
            f"Rejecting alter syncStateSet request because the replicas {_braced(dead)} are not alive",
        )
    if group.master_id not in new:
        raise _set_refused(
            ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
            f"the new syncStateSet does not contain the master {group.master_id}",
        )
    changed = replace(
        group, sync_state_set=new, sync_state_set_epoch=next_epoch(group.sync_state_set_epoch)
    )
    return Decision(
        group=changed,
        answer=changed,
        line=f"sync state set changed name={group.broker_name} before={sorted(group.sync_state_set)}"
        f" now={sorted(new)} set_epoch={changed.sync_state_set_epoch} reason=its master {change.master_id} asked",
    )


def clean(
    group: Group | None,
    *,
    broker_name: str,
    cluster: str | None,
    ids: Collection[int] | None,
    living: Living,
    even_alive: bool,
) -> Decision[frozenset[int]]:
    """Forget brokers; None: all of the group, which then begins anew. The answer: which were forgotten.

    Ids and epochs stay used: a broker that was forgotten and comes back must not be taken for another one, and a new
    master must not have an epoch that brokers have seen before.
    """
    if group is None or not group.members:
        raise _not_cleaned(f"Broker-set {broker_name} is not known, clean up failure")
    if cluster:
        check_cluster(group, cluster)
    gone = frozenset(group.members if ids is None else ids)
    if unknown := gone - group.members.keys():
        raise _not_cleaned(f"Broker-set {broker_name} has no brokers {_braced(unknown)}")
    if not even_alive:
        for broker_id in sorted(gone):
            if living.may_include(broker_id):
                raise _not_cleaned(
                    f"Broker [{broker_name},  {broker_id}] is still alive, clean up failure"
                )
    if not gone:
        return Decision(group=group, answer=gone)
    changed = without_master(group) if group.master_id in gone else group
    if gone & group.sync_state_set:
        changed = replace(
            changed,
            sync_state_set=group.sync_state_set - gone,
            sync_state_set_epoch=next_epoch(group.sync_state_set_epoch),
        )
    changed = replace(changed, members={i: m for i, m in group.members.items() if i not in gone})
    if not changed.members:
        changed = replace(changed, began_epoch=changed.master_epoch)
    return Decision(
        group=changed,
        answer=gone,
        line=f"brokers forgotten name={broker_name} ids={sorted(gone)} left={sorted(changed.members)}"
        f" epoch={changed.master_epoch} reason=an operator asked",
    )


def check_cluster(group: Group | None, cluster: str) -> None:
    """The name alone is the key, so two clusters cannot both have it."""
    if group is not None and group.cluster != cluster:
        raise _bad(
            f"broker-set {group.broker_name} belongs to the cluster {group.cluster}, not to {cluster}"
        )


def check_name(key: str, text: str) -> None:
    if not text.strip() or len(text) > NAME_CHARS_MAX or not text.isprintable():
        raise _bad(f"{key} must have 1 to {NAME_CHARS_MAX} printable characters")


def _check_address(key: str, address: str) -> None:
    try:
        split_address(address)
    except UsageError as error:
        raise _bad(f"{key}: {error}") from None
    if len(address) > NAME_CHARS_MAX or not address.isprintable():
        raise _bad(f"{key}: an address has at most {NAME_CHARS_MAX} printable characters")


def _braced(ids: Collection[int]) -> str:
    return "{" + ", ".join(map(str, sorted(ids))) + "}"


def _set_refused(code: ResponseCode, remark: str) -> Refused:
    return Refused(code, remark, ext={"newSyncStateSetEpoch": "0"})


def _not_cleaned(remark: str) -> Refused:
    return Refused(ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, remark)


def _bad(remark: str) -> Refused:
    return Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, remark)


def _full(remark: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_BUSY, remark)
