"""What is done for the Python process of Spark's in which tasks run, one after the other."""

from __future__ import annotations

import gc
from typing import Final

TASKS: Final = 2
"""The first task imports what it needs on its way, so it is the second that finds all of it."""

_tasks_begun = 0


def spare_collector() -> None:
    """Have the garbage collector pass over what is here already, modules for the most part; call it as a task begins.

    After each task Spark's worker collects garbage, and looks at all that was ever imported for that: 40 ms and more,
    half of what a task of some ten thousand rows takes otherwise. Later tasks leave the rest to the collector: what
    it passes over is never freed.
    """
    global _tasks_begun
    if _tasks_begun < TASKS:
        _tasks_begun += 1
        gc.freeze()
