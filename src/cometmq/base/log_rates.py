"""Rate limits for log lines, per cause and per peer: a burst, then one line from time to time. And their length.

Lines with the same text before their values are filled in have the same cause. Anyone who can reach a server can make
it log; without a limit, one peer could fill the disk or bury important lines in noise. Lines that are left out are
counted. This module only decides; ``logs`` does the I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from cometmq.base.settings import setting

PEER_BURST: Final = 20
PEER_SECONDS: Final = 30.0
"""The burst of lines that a host may log for one cause, and the seconds until it may log one more."""
CAUSE_BURST: Final = 200
CAUSE_SECONDS: Final = 5.0
"""The same for all hosts together."""
PEER_MINUTES: Final = 10
KEYS_MAX: Final = 4096
PEERS_NAMED_MAX: Final = 5

_FIELD = re.compile(r"%%|(\b(?:peer|by)=)?%[-#0 +]*[\d.]*[a-zA-Z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """How much others may make a server log."""

    lines_per_peer_max: int = setting(
        "logLinesPerPeerMax",
        f"Maximum number of log lines that one host may cause in {PEER_MINUTES} minutes; those left out are counted.",
        default=200,
        low=1,
    )
    line_chars_max: int = setting(
        "logLineLengthMax",
        "Maximum number of characters of a log line; longer ones are cut.",
        default=4096,
        low=200,
    )


class _Bucket:
    __slots__ = ("at", "tokens")

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens = tokens
        self.at = at

    def has_token(self, burst: int, seconds: float, now: float) -> bool:
        self.tokens = min(burst, self.tokens + (now - self.at) / seconds)
        self.at = now
        return self.tokens >= 1


class LineRates:
    """Remembers how much each peer has logged. Not thread-safe."""

    def __init__(self, lines_per_peer_max: int = LogLimits().lines_per_peer_max) -> None:
        self._lines_per_peer_max = lines_per_peer_max
        self._of_peer: dict[str, _Bucket] = {}
        self._by_peer: dict[tuple[str, str], _Bucket] = {}
        self._by_cause: dict[str, _Bucket] = {}
        self._left_out: dict[str, tuple[int, set[str]]] = {}

    def admit(self, cause: str, peer: str, now: float) -> bool:
        """Whether a line may be written. ``peer`` is the host that caused it, or "" when none did."""
        of_cause = self._by_cause.get(cause)
        if of_cause is None:
            _make_room(self._by_cause)
            of_cause = self._by_cause[cause] = _Bucket(CAUSE_BURST, now)
        is_admitted = of_cause.has_token(CAUSE_BURST, CAUSE_SECONDS, now)
        if is_admitted and peer:
            of_peer = self._by_peer.get((cause, peer))
            if of_peer is None:
                _make_room(self._by_peer)
                of_peer = self._by_peer[cause, peer] = _Bucket(PEER_BURST, now)
            of_all = self._of_peer.get(peer)
            if of_all is None:
                _make_room(self._of_peer)
                of_all = self._of_peer[peer] = _Bucket(self._lines_per_peer_max, now)
            most = self._lines_per_peer_max
            is_admitted = of_peer.has_token(PEER_BURST, PEER_SECONDS, now) and of_all.has_token(
                most, PEER_MINUTES * 60 / most, now
            )
            if is_admitted:
                of_peer.tokens -= 1
                of_all.tokens -= 1
        if is_admitted:
            of_cause.tokens -= 1
        else:
            self._count(cause, peer)
        return is_admitted

    def take_left_out(self) -> list[tuple[str, int, list[str]]]:
        """Cause, count and some of the hosts of the lines left out since the last call."""
        told = [(cause, count, sorted(peers)) for cause, (count, peers) in self._left_out.items()]
        self._left_out.clear()
        return told

    def _count(self, cause: str, peer: str) -> None:
        count, peers = self._left_out.get(cause, (0, set()))
        if peer and len(peers) < PEERS_NAMED_MAX:
            peers.add(peer)
        self._left_out[cause] = (count + 1, peers)

    def __len__(self) -> int:
        return len(self._by_peer) + len(self._by_cause) + len(self._of_peer)


def peer_of(template: str, values: Any) -> str:
    """The host of the value after ``peer=`` or ``by=``; "" when the line has none."""
    index = _peer_index(template)
    if index is None or not isinstance(values, tuple) or index >= len(values):
        return ""
    return str(values[index]).rpartition(":")[0]


@lru_cache(maxsize=1024)
def _peer_index(template: str) -> int | None:
    fields = [match for match in _FIELD.finditer(template) if match.group() != "%%"]
    return next((index for index, match in enumerate(fields) if match.group(1)), None)


def _make_room(buckets: dict[Any, _Bucket]) -> None:
    """Forget the peers that have been quiet longest; they start again with a full burst, which is small."""
    if len(buckets) >= KEYS_MAX:
        by_age = sorted(buckets, key=lambda key: buckets[key].at)
        for key in by_age[: KEYS_MAX // 4]:
            del buckets[key]
