"""Namespaces: tenants that share a cluster without seeing each other's topics and groups. No I/O.

On the wire ``topic`` is ``ns%topic``, ``%RETRY%group`` is ``%RETRY%ns%group`` and ``%DLQ%group`` is ``%DLQ%ns%group``.
System topics and groups belong to no namespace and stay unchanged.
"""

from __future__ import annotations

from typing import Final

from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

SEPARATOR: Final = "%"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"


def wrap(namespace: str, name: str) -> str:
    """The wire name. A name that is already in the namespace, or a system name, is returned unchanged."""
    if not namespace or not name or _is_system(name):
        return name
    prefix, rest = _split(name)
    if rest.startswith(namespace + SEPARATOR):
        return name
    return prefix + namespace + SEPARATOR + rest


def unwrap(namespace: str, name: str) -> str:
    """The user's name. A name from another namespace is returned unchanged."""
    if not namespace or _is_system(name):
        return name
    prefix, rest = _split(name)
    return prefix + rest.removeprefix(namespace + SEPARATOR)


def _is_system(name: str) -> bool:
    return is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX)


def _split(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name.removeprefix(prefix)
    return "", name
