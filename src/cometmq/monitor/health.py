"""Whether a server is alive, and whether it is ready: the answers of /healthz and /readyz, with the reasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from cometmq.remoting.http.exchange import HttpAnswer

Check = Callable[[], str | None]
"""Why something is wrong; None as long as it is not."""

JSON: Final = "application/json"


class Health:
    """
    Args:
        alive: what no waiting will mend: whoever watches the server may restart it.
        ready: what has to be so before clients should come; what is not alive is not ready either.
    """

    def __init__(self, *, alive: Mapping[str, Check], ready: Mapping[str, Check]) -> None:
        self._alive = alive
        self._ready = ready

    @property
    def is_alive(self) -> bool:
        return all(check() is None for check in self._alive.values())

    def alive(self) -> HttpAnswer:
        return _answer(self._alive)

    def ready(self) -> HttpAnswer:
        return _answer({**self._alive, **self._ready})

    def reasons(self) -> dict[str, str]:
        """What is wrong, by check."""
        found = {name: check() for name, check in {**self._alive, **self._ready}.items()}
        return {name: reason for name, reason in found.items() if reason is not None}


def _answer(checks: Mapping[str, Check]) -> HttpAnswer:
    found = {name: check() for name, check in checks.items()}
    is_well = not any(found.values())
    body = {
        "status": "ok" if is_well else "failing",
        "checks": {name: reason or "ok" for name, reason in found.items()},
    }
    return HttpAnswer(200 if is_well else 503, json.dumps(body, indent=2).encode() + b"\n", JSON)
