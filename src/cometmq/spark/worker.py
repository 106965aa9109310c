"""What is done for the Python process of Spark's in which tasks run, one after the other."""

from __future__ import annotations

import gc
from typing import Final

import pyarrow as pa

TASKS: Final = 2
"""The first task imports what it needs on its way, so it is the second that finds all of it."""

_tasks_begun = 0


def begin_task() -> None:
    """Call it before a task takes any memory."""
    _give_back_memory()
    _spare_collector()


def _give_back_memory() -> None:
    """What Arrow's allocator keeps of the batches of the task before: it would take new memory for ours beside it, and
    the worker would hold more at its second task than it ever needs."""
    pa.default_memory_pool().release_unused()


def _spare_collector() -> None:
    """Have the garbage collector pass over what is here already, modules for the most part.

    After each task Spark's worker collects garbage, and looks at all that was ever imported for that: 40 ms and more,
    half of what a task of some ten thousand rows takes otherwise. Later tasks leave the rest to the collector: what
    it passes over is never freed.
    """
    global _tasks_begun
    if _tasks_begun < TASKS:
        _tasks_begun += 1
        gc.freeze()
