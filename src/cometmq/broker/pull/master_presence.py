"""Whether the master of a slave is there, as far as the slave knows. It decides how long readers stay at the slave.

Whoever hears of the master says so (``replication``); whoever holds readers listens. A slave that knows nothing acts as
if there were no master: it serves readers as long as they come. Owned by the event loop.
"""

from __future__ import annotations

from collections.abc import Callable


class MasterPresence:
    def __init__(self) -> None:
        self._is_there = False
        self._listeners: list[Callable[[bool], None]] = []

    @property
    def is_there(self) -> bool:
        return self._is_there

    def on_change(self, listener: Callable[[bool], None]) -> None:
        """Call ``listener`` with each change."""
        self._listeners.append(listener)

    def note(self, is_there: bool) -> None:
        """The master was found, or lost."""
        if is_there is self._is_there:
            return
        self._is_there = is_there
        for listener in self._listeners:
            listener(is_there)

    def __repr__(self) -> str:
        return f"<MasterPresence {'there' if self._is_there else 'not known'}>"
