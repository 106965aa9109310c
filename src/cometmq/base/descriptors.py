"""Who may have how many of the file descriptors of the process, so that the log can always open its next file.

    number of the descriptor      who may take it
    0 ...             3/4         everybody
    ... 3/4           7/8         queue files, and those below
    ... 7/8           the limit   log, index and what is open for a moment only

Nobody counts. A new descriptor gets the lowest number that is free: one above a border tells that all below it are
taken, whoever in this process has them. Then a connection is refused, and a queue file is closed for another.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DescriptorShares:
    limit: int
    """How many the process may have."""

    @property
    def connections_below(self) -> int:
        return self.limit * 3 // 4

    @property
    def queue_files_below(self) -> int:
        return self.limit * 7 // 8

    @property
    def queue_files_max(self) -> int:
        """So that a quarter at least is left for connections."""
        return max(self.limit // 2, 1)

    @property
    def log_files_max(self) -> int:
        """A mapped file has two."""
        return max(self.limit // 32, 2)
