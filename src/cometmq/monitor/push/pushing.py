"""Metrics that are pushed in intervals: to a collector (OTLP_GRPC) or into the log (LOG)."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from cometmq.base.logs import METRICS
from cometmq.monitor.metrics import Metrics
from cometmq.monitor.monitor_config import OTLP_GRPC, MonitorConfig
from cometmq.monitor.portions import in_portions
from cometmq.monitor.push.otlp import PORTION_POINTS, OtlpRound
from cometmq.monitor.push.otlp_grpc import NotExported, OtlpSender

logger = logging.getLogger("cometmq.monitor")
metrics_logger = logging.getLogger(METRICS)

CLOSE_SECONDS_MAX: Final = 5.0


class Pushing:
    """Pushes between ``start`` and ``stop``. Raises ConfigError: a library that is missing, or a wrong address."""

    def __init__(self, metrics: Metrics, config: MonitorConfig, scope: str) -> None:
        self._metrics = metrics
        self._round = OtlpRound(
            metrics.common,
            scope=scope,
            series_max=metrics.series_max,
            is_delta=config.is_delta,
            started_ns=time.time_ns(),
        )
        self._sender: OtlpSender | None = None
        self._batch_max = sys.maxsize
        """Metrics in one message: all of them on one line of the log."""
        self._interval_seconds = config.log_interval_ms / 1000
        if config.exporter == OTLP_GRPC:
            self._interval_seconds = config.interval_ms / 1000
            self._sender = OtlpSender(config.target, config.header_pairs, config.timeout_ms / 1000)
            # A metric has a portion of its points at most.
            self._batch_max = max(config.batch_points_max // PORTION_POINTS, 1)
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False
        self.failed_count = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="cometmq-metrics")

    async def stop(self) -> None:
        """Push a last time, as far as that goes in a moment."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await self._push()
        except TimeoutError:
            self._note(f"not done within {CLOSE_SECONDS_MAX:g} s")
        if self._sender is not None:
            self._sender.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_seconds)
            await self._push()

    async def _push(self) -> None:
        try:
            families = await self._metrics.read()
            metrics = await in_portions(self._round.metrics(families, time.time_ns()))
            for batch in _batches(metrics, self._batch_max):
                await asyncio.to_thread(self._send, self._round.request(batch))
        except NotExported as error:
            self._note(str(error))
        except Exception:
            logger.exception("metrics not exported")
        else:
            self._is_failing = False

    def _send(self, request: dict[str, Any]) -> None:
        if self._sender is None:
            (resource_metrics,) = request["resourceMetrics"]
            metrics_logger.info("%s", json.dumps(resource_metrics, separators=(",", ":")))
        else:
            self._sender.send(request)

    def _note(self, reason: str) -> None:
        """Log the first failure of a row."""
        self.failed_count += 1
        if not self._is_failing:
            self._is_failing = True
            logger.warning(
                "metrics not exported reason=%s; they will be tried again every %g s",
                reason,
                self._interval_seconds,
            )


def _batches(metrics: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    for first in range(0, len(metrics), size):
        yield metrics[first : first + size]
