"""A planned change of masters, which is our extension: the controller prepares the master that goes."""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64


class HandOverHeader(Header):
    """Request 29005, from the controller to a master: another broker is about to be elected by an operator's wish."""

    master_epoch: Int32
    successor_id: Int64
