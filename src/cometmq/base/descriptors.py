"""How the file descriptors of the process are shared, so that the log can always open its next file.

    number of the descriptor      who may use it
    0 ...             3/4         everybody
    ... 3/4           7/8         queue files, and those below
    ... 7/8           the limit   log, index and what is open for a moment only

Nothing is counted. A new descriptor gets the lowest free number, so a number above a limit means that all below it are
in use, whoever in this process uses them. Then a connection is refused, and one queue file is closed for another.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DescriptorShares:
    limit: int
    """How many descriptors the process may have."""

    @property
    def connections_below(self) -> int:
        return self.limit * 3 // 4

    @property
    def queue_files_below(self) -> int:
        return self.limit * 7 // 8

    @property
    def queue_files_max(self) -> int:
        """Leaves at least a quarter for connections."""
        return max(self.limit // 2, 1)

    @property
    def log_files_max(self) -> int:
        """A mapped file uses two descriptors."""
        return max(self.limit // 32, 2)
