"""Named integers, so that a signature says which offset it means."""

from __future__ import annotations

from typing import NewType

PhysicalOffset = NewType("PhysicalOffset", int)
"""Byte position in the commit log of one broker."""

QueueOffset = NewType("QueueOffset", int)
"""Index of a message in its queue; a consumer's position is one of these."""

QueueId = NewType("QueueId", int)
BrokerId = NewType("BrokerId", int)

MASTER_ID = BrokerId(0)
