"""How each key of a configuration is treated: used, accepted without effect, or refused.

Unknown keys are refused, and so are keys that ask for protection that does not exist here: a server that is told to
authenticate its clients and starts without doing so is worse than one that does not start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cometmq.base.errors import ConfigError
from cometmq.base.settings import Row, shown, unknown_key

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class NotChangeable(ConfigError):
    """A setting that cannot be changed over the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKeys:
    """RocketMQ keys that have no row here.

    Attributes:
        without_effect: accepted.
        unmet: what is not available, with the reason; accepted only when empty or false, which asks for nothing.
        aliases: older spellings of rows.
    """

    without_effect: frozenset[str]
    unmet: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)


def sort_keys(
    known: Mapping[str, Row], others: OtherKeys, values: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Split settings into those with a meaning, under their current key, and the names of those without.

    Raises:
        ConfigError: an unknown key, one that asks for protection that does not exist, or a control character.
    """
    for key, reason in others.unmet.items():
        if values.get(key, "").strip().lower() not in ("", "false"):
            raise ConfigError(f"{key}={shown(values[key].strip())} cannot be met: {reason}")
    meant: dict[str, str] = {}
    ignored: list[str] = []
    for given, text in values.items():
        key = others.aliases.get(given, given)
        if key in known:
            if meant.setdefault(key, text) != text:
                raise ConfigError(
                    f"{key} is set twice, to {shown(meant[key])} and to {shown(text)}"
                )
        elif given in others.without_effect or given in others.unmet:
            ignored.append(given)
        else:
            names = {**dict.fromkeys(others.without_effect), **others.unmet, **known}
            raise ConfigError(unknown_key(given, names))
        _check_text(given, text)
    return meant, ignored


def split_changes(
    known: Mapping[str, Row], meant: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Changes sent over the network: those that apply now, and those for the next start. Raises NotChangeable."""
    for key in meant:
        if not known[key].live and not known[key].next_start:
            raise NotChangeable(
                f"{key} cannot be changed over the network: change the file and restart"
            )
    now = {key: text for key, text in meant.items() if known[key].live}
    return now, {key: text for key, text in meant.items() if key not in now}


def next_start_remark(keys: Sequence[str]) -> str | None:
    """The remark in the reply of a server that has stored ``keys`` for the next start; None without any."""
    return f"stored; takes effect at the next start: {', '.join(keys)}" if keys else None


def _check_text(key: str, text: str) -> None:
    """Refuse control characters and line separators. Blanks around a value are ignored: nobody intends them."""
    found = _CONTROL.search(text.strip(" \t"))
    if found is not None:
        raise ConfigError(f"{key} must not hold the control character U+{ord(found.group()):04X}")
