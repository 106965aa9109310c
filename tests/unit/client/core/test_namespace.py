from __future__ import annotations

import pytest

from cometmq.client.core.namespace import unwrap, wrap


@pytest.mark.parametrize(
    ("name", "on_the_wire"),
    [
        ("Orders", "ns%Orders"),
        ("%RETRY%group", "%RETRY%ns%group"),
        ("%DLQ%group", "%DLQ%ns%group"),
        ("other%Orders", "ns%other%Orders"),
        ("nsOrders", "ns%nsOrders"),
    ],
)
def test_names_of_users_are_wrapped_and_unwrapped(name: str, on_the_wire: str) -> None:
    assert wrap("ns", name) == on_the_wire
    assert wrap("ns", on_the_wire) == on_the_wire
    assert unwrap("ns", on_the_wire) == name


@pytest.mark.parametrize(
    "name", ["TBW102", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX", "CID_RMQ_SYS_A"]
)
def test_names_of_the_system_belong_to_no_namespace(name: str) -> None:
    assert wrap("ns", name) == name
    assert unwrap("ns", name) == name


def test_without_a_namespace_nothing_changes() -> None:
    assert wrap("", "a%b") == unwrap("", "a%b") == "a%b"


def test_a_name_of_another_namespace_stays_as_it_is() -> None:
    assert unwrap("ns", "other%Orders") == "other%Orders"
