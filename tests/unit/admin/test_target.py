"""Which brokers a target means."""

from __future__ import annotations

import pytest

from cometmq.admin import NoSuchName, Target
from cometmq.admin.target import chosen
from cometmq.base.errors import UsageError
from cometmq.model.route import BrokerData
from cometmq.protocol.bodies.route import ClusterInfo


def _info(*brokers: tuple[str, str, dict[int, str]]) -> ClusterInfo:
    return ClusterInfo(
        broker_addr_table={
            name: BrokerData(cluster=cluster, broker_name=name, broker_addrs=addresses)
            for cluster, name, addresses in brokers
        }
    )


TWO_CLUSTERS = _info(
    ("east", "a", {0: "h:1", 1: "h:2"}),
    ("east", "b", {1: "h:3", 2: "h:4"}),
    ("west", "c", {0: "h:5"}),
)


def _addresses(target: Target, info: ClusterInfo, *, is_change: bool = False) -> list[str]:
    return [place.address for place in chosen(target, info, is_change=is_change)]


def test_masters_are_meant_or_who_stands_in_for_one() -> None:
    assert _addresses(Target(), TWO_CLUSTERS) == ["h:1", "h:3", "h:5"]
    assert _addresses(Target(cluster="east"), TWO_CLUSTERS) == ["h:1", "h:3"]
    assert _addresses(Target(broker="b"), TWO_CLUSTERS) == ["h:3"]


def test_slaves_only_if_asked_for() -> None:
    target = Target(cluster="east", with_slaves=True)
    assert _addresses(target, TWO_CLUSTERS) == ["h:1", "h:2", "h:3", "h:4"]


def test_a_change_of_everything_needs_a_single_cluster() -> None:
    with pytest.raises(UsageError, match=r"several clusters \(east, west\): say which one"):
        _addresses(Target(), TWO_CLUSTERS, is_change=True)
    one = _info(("east", "a", {0: "h:1"}))
    assert _addresses(Target(), one, is_change=True) == ["h:1"]


def test_names_that_are_not_there_tell_which_are() -> None:
    with pytest.raises(NoSuchName, match="no cluster 'north'; there are: east, west"):
        _addresses(Target(cluster="north"), TWO_CLUSTERS)
    with pytest.raises(NoSuchName, match="no broker 'd'; there are: a, b, c"):
        _addresses(Target(broker="d"), TWO_CLUSTERS)
    with pytest.raises(NoSuchName, match="no broker is registered"):
        _addresses(Target(), _info())
