"""What a broker tells about itself (28): texts by RocketMQ's names, and the most wanted ones as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """``table`` is what the broker said. A figure that it left out, or that is none, is 0 or empty here."""

    table: Mapping[str, str]

    @property
    def version(self) -> str:
        """``V4_9_8``"""
        return self.table.get("brokerVersionDesc", "")

    @property
    def is_active(self) -> bool:
        """Whether it delivers delayed messages and checks transactions. RocketMQ 4 does not tell: False."""
        return self.table.get("brokerActive") == "true"

    @property
    def put_tps(self) -> float:
        """Messages stored per second, over the last ten seconds."""
        return self._first("putTps")

    @property
    def get_tps(self) -> float:
        """Messages delivered per second, over the last ten seconds."""
        return self._first("getTransferredTps") or self._first("getTransferedTps")

    @property
    def put_today(self) -> int:
        """Messages stored since midnight."""
        return self.number("msgPutTotalTodayNow") - self.number("msgPutTotalTodayMorning")

    @property
    def get_today(self) -> int:
        return self.number("msgGetTotalTodayNow") - self.number("msgGetTotalTodayMorning")

    @property
    def put_yesterday(self) -> int:
        return self.number("msgPutTotalTodayMorning") - self.number("msgPutTotalYesterdayMorning")

    @property
    def get_yesterday(self) -> int:
        return self.number("msgGetTotalTodayMorning") - self.number("msgGetTotalYesterdayMorning")

    @property
    def earliest_message_ms(self) -> int:
        """When the oldest message was stored; 0 if there is none."""
        return max(self.number("earliestMessageTimeStamp"), 0)

    @property
    def disk_ratio(self) -> float:
        """Used part of the log's file system, from 0 to 1."""
        return self.decimal("commitLogDiskRatio")

    def number(self, key: str) -> int:
        """A figure as a whole number."""
        text = self.table.get(key, "").strip()
        return int(text) if text.lstrip("-").isdecimal() else 0

    def decimal(self, key: str) -> float:
        """A figure as a number."""
        try:
            return float(self.table.get(key, "0"))
        except ValueError:
            return 0.0

    def _first(self, key: str) -> float:
        """Of three averages the one over the shortest time."""
        try:
            return float(self.table.get(key, "").split()[0])
        except (IndexError, ValueError):
            return 0.0
