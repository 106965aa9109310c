"""What a server asks of the allocator of its process."""

from __future__ import annotations

import ctypes
from typing import Final

# Of malloc.h.
_M_MMAP_THRESHOLD: Final = -3


def give_big_blocks_back() -> None:
    """Let freed memory of a megabyte and more go back to the system at once.

    Otherwise glibc takes what was freed once for what will be needed again, and keeps it between smaller blocks: 60 MB
    stayed after 120 peers had sent 16 MB each. Without glibc there is nothing to be done.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def give_free_blocks_back() -> None:
    """Let all memory that is free now go back to the system, for who needs much of it now and then.

    It takes some milliseconds, during which other threads may run. Without glibc there is nothing to be done.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
