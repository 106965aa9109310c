"""Which log files are deleted, and when sends are refused: decisions only, ``deletion`` carries them out.

    disk in use      effect
    > 75 %           expired files are deleted at once, not only at the hour of deleteWhen
    > 85 %           the oldest files are deleted whatever their age (cleanFileForciblyEnable)
    > 90 %           the disk counts as full: sends are refused until it is down to 85 % again

The gap between the last two keeps a store at its limit from switching with every file. Queue and index files follow
the log: they are deleted once nothing in them points to an existing record.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.ports import Clock
from cometmq.store.store_config import RetentionConfig

logger = logging.getLogger("cometmq.store")

MANUAL_ROUNDS: Final = 20
"""Number of runs that a manual request stays in force, as in RocketMQ: one run may not delete all files due."""

HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Deletion:
    """Delete the oldest ``count`` log files because of ``reason``: hour, disk, manual or forced."""

    count: int
    reason: str = ""


class Retention:
    """Keeps the state between runs that the decisions depend on. Owner thread only."""

    def __init__(self, config: RetentionConfig, clock: Clock) -> None:
        self._clock = clock
        self._manual_rounds = 0
        self.is_disk_full = False
        self.apply(config)

    def apply(self, config: RetentionConfig) -> None:
        """Apply new settings. Raises ConfigError and keeps the old ones."""
        self._hours = parse_hours(config.delete_when)
        self._config = config

    def ask(self) -> None:
        """Delete expired files now."""
        self._manual_rounds = MANUAL_ROUNDS

    def watch_disk(self, used_ratio: float) -> None:
        """Record how full the disk is; also called between runs, so that a refusal ends soon after space is freed."""
        is_full = is_disk_full(used_ratio, self.is_disk_full, self._config)
        if is_full != self.is_disk_full:
            state = "full" if is_full else "ok"
            logger.warning("disk %s used_percent=%.1f", state, used_ratio * 100)
        self.is_disk_full = is_full

    def plan(self, modified_ms: Sequence[int], used_ratio: float) -> Deletion:
        """One run.

        Args:
            modified_ms: when each log file was last written, oldest file first, the one being written last.
            used_ratio: of the fuller of the two partitions that hold log and queues.
        """
        self.watch_disk(used_ratio)
        now_ms = self._clock.wall_ms()
        is_manual = self._manual_rounds > 0
        self._manual_rounds = max(self._manual_rounds - 1, 0)
        reason = reason_to_delete(
            local_hour(now_ms), self._hours, used_ratio, is_manual, self._config
        )
        if reason is None:
            return Deletion(0)
        count = files_due(modified_ms, now_ms, self._config, ignore_age=reason == "forced")
        return Deletion(count, reason)


def parse_hours(text: str) -> frozenset[int]:
    """Hours of the day from ``04`` or ``04;16``. Raises ConfigError."""
    hours: set[int] = set()
    for part in text.split(";"):
        part = part.strip()
        if not part:
            continue
        if not (part.isascii() and part.isdecimal() and int(part) < 24):
            raise ConfigError(f"deleteWhen must be hours from 00 to 23 joined by ;, not {text!r}")
        hours.add(int(part))
    return frozenset(hours)


def is_disk_full(used_ratio: float, was_full: bool, config: RetentionConfig) -> bool:
    percent = used_ratio * 100
    if percent > config.disk_warning_percent:
        return True
    return was_full and percent > min(config.disk_forcible_percent, config.disk_warning_percent)


def reason_to_delete(
    hour: int, hours: frozenset[int], used_ratio: float, is_manual: bool, config: RetentionConfig
) -> str | None:
    percent = used_ratio * 100
    if percent > config.disk_forcible_percent and config.clean_forcibly:
        return "forced"
    if percent > config.disk_max_used_percent:
        return "disk"
    if is_manual:
        return "manual"
    return "hour" if hour in hours else None


def files_due(
    modified_ms: Sequence[int], now_ms: int, config: RetentionConfig, *, ignore_age: bool
) -> int:
    """How many of the oldest files to delete: up to the first that is not old enough, never the last file."""
    reserved_ms = config.reserved_hours * HOUR_MS
    candidates = modified_ms[:-1][: config.delete_batch_max]
    if ignore_age:
        return len(candidates)
    for count, modified in enumerate(candidates):
        if modified + reserved_ms >= now_ms:
            return count
    return len(candidates)


def local_hour(now_ms: int) -> int:
    moment = datetime.datetime.fromtimestamp(now_ms / 1000, tz=datetime.UTC)
    return moment.astimezone().hour
