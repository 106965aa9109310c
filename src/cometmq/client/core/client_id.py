"""Client ids, by which brokers identify clients and rebalancing distributes queues. No I/O.

``ip@instance`` or ``ip@instance@unit``.
"""

from __future__ import annotations


def client_id(ip: str, instance_name: str, unit_name: str = "") -> str:
    return f"{ip}@{instance_name}@{unit_name}" if unit_name else f"{ip}@{instance_name}"


def unique_instance_name(process_id: int, nanoseconds: int) -> str:
    """The replacement for the instance name ``DEFAULT``, so that two processes on a machine never share an id."""
    return f"{process_id}#{nanoseconds}"
