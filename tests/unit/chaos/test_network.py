"""Which links a fault of the network concerns."""

from __future__ import annotations

import pytest
from tests.chaos.plan.faults import Fault
from tests.chaos.world.network import Link, cut_between, links_under

HOSTS = ["clients", "n1", "b1"]
OUT = {("b1", "clients"), ("b1", "n1")}
INTO = {("clients", "b1"), ("n1", "b1")}


@pytest.mark.parametrize(
    ("kind", "link", "pairs"),
    [
        (Fault.CUT, Link(is_cut=True), OUT | INTO),
        (Fault.CUT_IN, Link(is_cut=True), INTO),
        (Fault.CUT_OUT, Link(is_cut=True), OUT),
        (Fault.SLOW, Link(delay_ms=0.5), OUT | INTO),
        (Fault.LOSSY, Link(loss=0.5), OUT | INTO),
    ],
)
def test_links(kind: Fault, link: Link, pairs: set[tuple[str, str]]) -> None:
    assert links_under(kind, "b1", 0.5, HOSTS) == dict.fromkeys(pairs, link)


def test_a_cut_between_some_and_others_leaves_everybody_else_alone() -> None:
    pairs = {("b1", "c1"), ("c1", "b1"), ("b1", "c2"), ("c2", "b1")}
    assert cut_between(["b1"], ["c1", "c2"]) == dict.fromkeys(pairs, Link(is_cut=True))


def test_other_faults_concern_no_link() -> None:
    with pytest.raises(ValueError, match="kill is no fault of the network"):
        links_under(Fault.KILL, "b1", 0, HOSTS)
