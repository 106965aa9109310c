"""How labels of the broker's metrics are written."""

from __future__ import annotations

from typing import Final

from cometmq.model.names import is_system_topic

_SYSTEM_GROUP: Final = "cid_rmq_sys_"
_FIRST_VERSION: Final = 213
"""4.0.0; older ones follow no rule."""
_HIGHEST_VERSION: Final = 611
_PATCHES: Final = 10


def flag(is_so: bool) -> str:
    return "true" if is_so else "false"


def is_system(topic: str, group: str = "") -> str:
    return flag(is_system_topic(topic) or group.lower().startswith(_SYSTEM_GROUP))


def version_name(number: int) -> str:
    """``V5_5_0`` for 513: versions have two numbers each, ``-SNAPSHOT`` and then final."""
    if number > _HIGHEST_VERSION:
        return "HIGHER_VERSION"
    if number < _FIRST_VERSION - 1:
        return "V3" if number >= 0 else "UNKNOWN"
    release, is_final = divmod(number - _FIRST_VERSION + 1, 2)
    minor, patch = divmod(release, _PATCHES)
    name = f"V{4 + minor // 10}_{minor % 10}_{patch}"
    return name if is_final else f"{name}_SNAPSHOT"
