"""What a controller tells of the brokers of one name."""

from __future__ import annotations

from typing import NamedTuple


class GroupView(NamedTuple):
    """Args:
    epoch: the number of the last election; 0 before the first.
    master_id: the permanent id of the master; None when there is none.
    members: the SyncStateSet: who has everything that was acknowledged.
    set_epoch: the number of the last change of that.
    is_certain: it is so, or was when the controller was asked. Else the controller cannot reach its store and says what
        it remembers: true once, and perhaps long ago.
    """

    epoch: int = 0
    master_id: int | None = None
    master_address: str | None = None
    members: frozenset[int] = frozenset()
    set_epoch: int = 0
    is_certain: bool = True
