"""Copies without copying: blocks that two files share until one of them is written, where the file system has that.

btrfs, and XFS made with reflink=1, have it. Hard links would be no copies: what is written to one is written to both.
"""

from __future__ import annotations

import fcntl
import struct
from typing import Final

_FICLONERANGE: Final = 0x4020940D
"""The request of ``ioctl_ficlonerange(2)``: source, where in it, how much, where in the target."""

CLONED_BLOCK_BYTES: Final = 64 << 10
"""Ranges are cloned in whole blocks of the file system; none has larger ones."""


def clone_range(source: int, target: int, position: int, length: int) -> bool:
    """Share a range of two open files at the same position; both numbers are multiples of ``CLONED_BLOCK_BYTES``.

    Args:
        source: a descriptor; -1 for a file without one.

    Returns:
        Whether it was done. What was not can be copied.
    """
    if source < 0 or target < 0:
        return False
    try:
        fcntl.ioctl(target, _FICLONERANGE, struct.pack("=qQQQ", source, position, length, position))
    except OSError:
        # The file system cannot, or not across its border; a full disk shows again with the copy.
        return False
    return True
