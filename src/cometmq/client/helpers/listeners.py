"""What wrappers need to know about listeners."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def is_async(listener: Callable[..., Any]) -> bool:
    """Whether it is an ``async def`` function, or an object with an ``async def __call__``."""
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
        getattr(listener, "__call__", None)  # noqa: B004
    )


def count_of(argument: object) -> int:
    """The number of messages passed to a listener: a batch is a list."""
    return len(argument) if isinstance(argument, list) else 1
