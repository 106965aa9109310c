"""Fields that are never shown, by rules such as ``password``, ``card*`` or ``customer.iban``."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

MASK: Final = "***"
DEPTH_MAX: Final = 100


class Masks:
    """A rule without a dot is the name of a field at any depth, one with dots a whole path. Case is ignored."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._names = [rule.lower() for rule in rules if "." not in rule]
        self._paths = [rule.lower() for rule in rules if "." in rule]

    def __bool__(self) -> bool:
        return bool(self._names or self._paths)

    def hides(self, path: str) -> bool:
        path = path.lower()
        name = path.rpartition(".")[2]
        return any(fnmatchcase(name, rule) for rule in self._names) or any(
            fnmatchcase(path, rule) for rule in self._paths
        )

    def apply(self, value: Any) -> tuple[Any, list[str]]:
        """The value with hidden fields replaced, and their paths."""
        hidden: list[str] = []
        return (self._masked(value, "", hidden, 0) if self else value), hidden

    def properties(self, values: dict[str, str]) -> dict[str, str]:
        return {key: MASK if self.hides(key) else value for key, value in values.items()}

    def _masked(self, value: Any, path: str, hidden: list[str], depth: int) -> Any:
        if depth > DEPTH_MAX:
            hidden.append(path)
            return MASK
        if isinstance(value, dict):
            masked = {}
            for key, item in value.items():
                inner = f"{path}.{key}" if path else str(key)
                if self.hides(inner):
                    hidden.append(inner)
                    masked[key] = MASK
                else:
                    masked[key] = self._masked(item, inner, hidden, depth + 1)
            return masked
        if isinstance(value, list):
            return [self._masked(item, path, hidden, depth + 1) for item in value]
        return value
