from __future__ import annotations

from cometmq.client.core.client_id import client_id, unique_instance_name


def test_parts_are_joined_as_brokers_and_operators_know_them() -> None:
    assert client_id("10.0.0.1", "worker") == "10.0.0.1@worker"
    assert client_id("10.0.0.1", "worker", "unit-2") == "10.0.0.1@worker@unit-2"


def test_a_made_up_name_tells_processes_and_moments_apart() -> None:
    names = {unique_instance_name(pid, nanos) for pid in (1, 12) for nanos in (1, 21)}
    assert names == {"1#1", "1#21", "12#1", "12#21"}
