"""What a server puts together: its metrics, its health, and the port that shows them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.model.address import is_loopback, join_address
from cometmq.monitor.family import Family, counter, gauge, single
from cometmq.monitor.health import Health
from cometmq.monitor.loop_lag import LoopLag
from cometmq.monitor.metrics import Metrics, Ready, Source
from cometmq.monitor.monitor_config import LOG, OTLP_GRPC, PROM, MonitorConfig
from cometmq.monitor.push.pushing import Pushing
from cometmq.monitor.text_page import OPEN_METRICS, PLAIN
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.http.exchange import HttpAnswer, HttpRequest, fault
from cometmq.remoting.http.http_port import HttpPort

logger = logging.getLogger("cometmq.monitor")

CONNECTIONS_MAX: Final = 32
EXCHANGE_SECONDS: Final = 30.0
LOOPBACK: Final = "127.0.0.1"


class Monitor:
    """Shows a server between ``start`` and ``stop``, both on its event loop.

    Args:
        common: labels of every series.
        scope: what made the metrics: ``broker-meter``.
    """

    def __init__(
        self,
        config: MonitorConfig,
        sources: Sequence[Source],
        *,
        common: Mapping[str, str],
        scope: str,
        health: Health,
        lag: LoopLag,
    ) -> None:
        self._config = config
        self._scope = scope
        self.health = health
        self._lag = lag
        self.metrics = Metrics(
            [*sources, Ready(*lag.families)],
            common={**common, "otel_scope_name": scope, **config.common_labels},
            series_max=config.series_max,
        )
        self._http: HttpPort | None = None
        self._pushing: Pushing | None = None

    @property
    def address(self) -> str | None:
        """Where /healthz and /readyz are, and /metrics with PROM; None if nowhere."""
        if self._http is None:
            return None
        return join_address(self._config.host or LOOPBACK, self._http.port)

    async def start(self) -> None:
        """Raises ConfigError: a library that is missing. RemotingError: the port cannot be had."""
        config = self._config
        if config.exporter in (OTLP_GRPC, LOG):
            self._pushing = Pushing(self.metrics, config, self._scope)
        if (port := config.http_port) is not None:
            key = "metricsPromExporterPort" if config.exporter == PROM else "healthPort"
            http = HttpPort(
                self._answer,
                noun="metrics and health",
                key=key,
                connections_max=CONNECTIONS_MAX,
                exchange_seconds=EXCHANGE_SECONDS,
            )
            await http.start(config.host or LOOPBACK, port)
            self._http = http
        if self._pushing is not None:
            self._pushing.start()
        self._lag.start()
        if self.address is not None:
            logger.info(
                "metrics and health shown exporter=%s address=%s", config.exporter, self.address
            )

    async def stop(self) -> None:
        self._lag.stop()
        if self._http is not None:
            await self._http.stop()
            self._http = None
        if self._pushing is not None:
            await self._pushing.stop()
            self._pushing = None

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.path == "/healthz":
            return self.health.alive()
        if request.path == "/readyz":
            return self.health.ready()
        if request.path == "/metrics" and self._config.exporter == PROM:
            return await self._page(request)
        return fault(404)

    async def _page(self, request: HttpRequest) -> HttpAnswer:
        try:
            names = frozenset(request.values("name[]"))
        except ValueError:
            return fault(400)
        is_open_metrics = "application/openmetrics-text" in request.accept
        page = await self.metrics.page(is_open_metrics=is_open_metrics, names=names)
        return HttpAnswer(200, page, OPEN_METRICS if is_open_metrics else PLAIN)


def check_open_page(config: MonitorConfig, *, allows_anonymous: bool) -> None:
    """Metrics and health ask nobody for an account, so beyond loopback somebody must have said that they may be read.

    Raises:
        ConfigError: nobody has.
    """
    if config.http_port is None or is_loopback(config.host or LOOPBACK):
        return
    if not (config.allows_anonymous or allows_anonymous):
        raise ConfigError(
            f"metrics and health would be shown on {config.host} (metricsPromExporterHost), beyond loopback: names of "
            "topics and groups, and all figures. Set metricsAllowAnonymous=true if everybody may read them, or leave "
            "out metricsPromExporterHost"
        )


def process_families(reached: Reached, boot_seconds: Callable[[], float]) -> tuple[Family, ...]:
    """What every server tells of itself."""
    return (
        gauge(
            "cometmq_uptime",
            (),
            single(boot_seconds),
            unit="seconds",
            text="Seconds since the server was started",
        ),
        gauge(
            "cometmq_tasks",
            (),
            single(lambda: float(len(asyncio.all_tasks()))),
            text="Tasks of the event loop",
        ),
        counter(
            "cometmq_bound_reached_total",
            ("bound",),
            lambda: [((bound,), float(count)) for bound, count in sorted(reached.counts.items())],
            text="How often a bound was reached, by the setting that names it",
        ),
    )
