"""What wrappers of listeners ask about them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def is_async(listener: Callable[..., Any]) -> bool:
    """Whether it is an ``async def``, or an object whose call is one."""
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
        getattr(listener, "__call__", None)  # noqa: B004
    )


def count_of(argument: object) -> int:
    """The number of messages a listener is given: a batch is a list."""
    return len(argument) if isinstance(argument, list) else 1
