"""What is done for the Python process of Spark's in which tasks run, one after the other."""

from __future__ import annotations

import gc

_is_spared = False


def spare_collector() -> None:
    """Have the garbage collector pass over what is here already, modules for the most part; once in a process.

    After each task Spark's worker collects garbage, and looks at all that was ever imported for that: 40 ms and more,
    half of what a task of some ten thousand rows takes otherwise.
    """
    global _is_spared
    if not _is_spared:
        _is_spared = True
        gc.freeze()
