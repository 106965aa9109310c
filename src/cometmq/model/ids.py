"""Named integers, so that a signature says which offset it means."""

from __future__ import annotations

from typing import Annotated, NewType

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
"""A Java ``int``; decoding checks the range."""

Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A Java ``long``; decoding checks the range."""

PhysicalOffset = NewType("PhysicalOffset", int)
"""Byte position in the commit log of one broker."""

QueueOffset = NewType("QueueOffset", int)
"""Index of a message in its queue; a consumer's position is one of these."""

BrokerId = NewType("BrokerId", int)

MASTER_ID = BrokerId(0)
