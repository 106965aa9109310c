"""What is kept of alerts over a restart: the rules, and for each site what fired before and what is silenced."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from cometmq.base.errors import ConfigError
from cometmq.dashboard.bodies.operations import Alert, Rule

T = TypeVar("T")

RULES: Final = "alert-rules.json"
PAST: Final = "alert-history.json"


class Past(msgspec.Struct, kw_only=True):
    """Of one site. ``silences`` are rule, subject and until when, in ms."""

    history: list[Alert] = msgspec.field(default_factory=list)
    silences: list[tuple[str, str, int]] = msgspec.field(default_factory=list)


class AlertFiles:
    """
    Args:
        directory: None keeps nothing.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._turn = asyncio.Lock()

    def rules(self) -> list[Rule] | None:
        """None if none were ever kept. Raises ConfigError: the file is damaged."""
        return self._load(RULES, list[Rule])

    def past(self) -> dict[str, Past]:
        """Raises ConfigError: the file is damaged."""
        return self._load(PAST, dict[str, Past]) or {}

    async def keep_rules(self, rules: Sequence[Rule]) -> None:
        await self._keep(RULES, rules)

    async def keep_past(self, past: Mapping[str, Past]) -> None:
        await self._keep(PAST, past)

    async def _keep(self, name: str, value: Any) -> None:
        """One at a time: two operators may change something at once."""
        if self._directory is None:
            return
        content = msgspec.json.format(msgspec.json.encode(value))
        async with self._turn:
            await asyncio.to_thread(_replace, self._directory / name, content)

    def _load(self, name: str, kind: type[T]) -> T | None:
        path = self._directory / name if self._directory else None
        if path is None or not path.exists():
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path} cannot be read: {error}; mend or remove it") from None


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_bytes(content)
    beside.replace(path)
