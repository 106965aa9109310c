"""From conditions to alerts: one that holds long enough fires once, and is resolved once. No I/O and no time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from cometmq.dashboard.alerts.conditions import Condition
from cometmq.dashboard.alerts.files import Past
from cometmq.dashboard.bodies.operations import Alert

FIRING, RESOLVED = "firing", "resolved"
HISTORY_MAX: Final = 1000
PENDING_MAX: Final = 20_000
EVERYBODY: Final = "*"

Key = tuple[str, str]
"""Rule and subject."""


@dataclass(slots=True)
class _Pending:
    since_ms: int
    alert: Alert | None = None


class AlertStates:
    def __init__(self, past: Past | None = None) -> None:
        past = past or Past()
        self.history: deque[Alert] = deque(past.history, maxlen=HISTORY_MAX)
        self.silences: dict[Key, int] = {
            (rule, subject): until for rule, subject, until in past.silences
        }
        """Until when, in ms."""
        self._pending: dict[Key, _Pending] = {}

    @property
    def past(self) -> Past:
        """What is kept over a restart; what still holds then fires anew."""
        silences = [(rule, subject, until) for (rule, subject), until in self.silences.items()]
        return Past(history=list(self.history), silences=silences)

    @property
    def firing(self) -> list[Alert]:
        found = [one.alert for one in self._pending.values() if one.alert is not None]
        return sorted(found, key=lambda alert: -alert.since_ms)

    def step(
        self, conditions: Sequence[Condition], for_seconds: Mapping[str, int], now_ms: int
    ) -> list[Alert]:
        """Returns those that begin to fire or are resolved now, but for silenced ones."""
        holding = {(one.rule, one.subject): one for one in conditions[:PENDING_MAX]}
        told: list[Alert] = []
        for key in [key for key in self._pending if key not in holding]:
            alert = self._pending.pop(key).alert
            if alert is not None:
                ended = msgspec.structs.replace(alert, state=RESOLVED, resolved_ms=now_ms)
                self.history.appendleft(ended)
                told.append(ended)
        for key, condition in holding.items():
            pending = self._pending.setdefault(key, _Pending(now_ms))
            if now_ms - pending.since_ms < for_seconds.get(condition.rule, 0) * 1000:
                continue
            until = self.silenced_until(key, now_ms)
            is_new = pending.alert is None
            pending.alert = Alert(
                rule=condition.rule,
                subject=condition.subject,
                kind=condition.kind,
                state=FIRING,
                value=condition.value,
                text=condition.text,
                since_ms=pending.since_ms,
                resolved_ms=None,
                silenced_until_ms=until,
            )
            if is_new:
                told.append(pending.alert)
        return [one for one in told if not self.silenced_until((one.rule, one.subject), now_ms)]

    def silence(self, rule: str, subject: str, until_ms: int) -> None:
        """Args: until_ms: 0 ends it."""
        if until_ms:
            self.silences[rule, subject] = until_ms
        else:
            self.silences.pop((rule, subject), None)

    def silenced_until(self, key: Key, now_ms: int) -> int:
        """0 if it is not."""
        until = max(self.silences.get(key, 0), self.silences.get((key[0], EVERYBODY), 0))
        return until if until > now_ms else 0
