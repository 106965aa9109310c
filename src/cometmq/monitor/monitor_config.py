"""Settings of metrics and health, with RocketMQ's keys where it has one. The same for all servers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting, shown

DISABLE: Final = "DISABLE"
OTLP_GRPC: Final = "OTLP_GRPC"
PROM: Final = "PROM"
LOG: Final = "LOG"
_TYPES: Final = (DISABLE, OTLP_GRPC, PROM, LOG)
"""In the order of RocketMQ's numbers for them, which it takes, too."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HEADER = re.compile(r"[a-zA-Z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamiliesConfig:
    """Which metrics there are."""

    requests: bool = setting(
        "enableRemotingMetrics", "Metrics of requests: rocketmq_rpc_latency.", default=True
    )
    store: bool = setting(
        "enableMessageStoreMetrics", "Metrics of the store and of timers.", default=True
    )
    pop: bool = setting("enablePopMetrics", "Metrics of POP consumption.", default=True)
    connections: bool = setting(
        "enableConnectionMetrics",
        "Metrics of connected producers and consumers.",
        default=True,
    )
    transactions: bool = setting(
        "enableTransactionMetrics", "Metrics of transactions.", default=True
    )
    stats: bool = setting(
        "enableStatsMetrics",
        "Metrics of the broker as a whole: watermarks, permission, number of topics and groups.",
        default=True,
    )
    messages: bool = setting(
        "enableRequestMetrics",
        "Metrics of messages in and out, and of created topics and groups.",
        default=True,
    )
    lag: bool = setting(
        "enableLagAndDlqMetrics", "Metrics of consumer lag and of dead letters.", default=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorConfig:
    exporter: str = setting(
        "metricsExporterType",
        "Who gets metrics: PROM serves them for Prometheus, OTLP_GRPC sends them to a collector, LOG logs them, "
        "DISABLE is nobody. RocketMQ's numbers 0 to 3 stand for DISABLE, OTLP_GRPC, PROM, LOG.",
        default=DISABLE,
        choices=(*_TYPES, "0", "1", "2", "3"),
    )
    port: int = setting(
        "metricsPromExporterPort",
        "Port for Prometheus, of /metrics, /healthz and /readyz; 0 takes any free one.",
        default=5557,
        low=0,
        high=65535,
    )
    host: str = setting(
        "metricsPromExporterHost",
        "Address that this port, or healthPort, listens on. Loopback by default; beyond it needs "
        "metricsAllowAnonymous.",
        default="",
    )
    allows_anonymous: bool = setting(
        "metricsAllowAnonymous",
        "Serve metrics and health beyond loopback: whoever reaches the port may read the names of topics and groups, "
        "and all figures. allowAnonymous=true allows it, too.",
        default=False,
    )
    health_port: int = setting(
        "healthPort",
        "Port of /healthz and /readyz without metricsExporterType=PROM, whose port has them; 0 leaves it off.",
        default=0,
        low=0,
        high=65535,
    )
    labels: str = setting("metricsLabel", "More labels of every series: name:value,...", default="")
    series_max: int = setting(
        "metricsOtelCardinalityLimit",
        "Maximum number of series of one metric. Counters and histograms beyond it are summed up in a series labelled "
        'otel_metric_overflow="true", gauges left out.',
        default=50_000,
        low=2,
        high=1_000_000,
    )
    target: str = setting(
        "metricsGrpcExporterTarget",
        "Address of the collector for OTLP_GRPC, such as 127.0.0.1:4317; https:// is put in front unless it starts "
        "with http.",
        default="",
    )
    headers: str = setting(
        "metricsGrpcExporterHeader",
        "Headers sent to the collector: name:value,...",
        default="",
        is_secret=True,
    )
    timeout_ms: int = setting(
        "metricGrpcExporterTimeOutInMills",
        "Milliseconds to wait for the collector.",
        default=3000,
        low=1,
    )
    interval_ms: int = setting(
        "metricGrpcExporterIntervalInMills",
        "Milliseconds between two exports to the collector.",
        default=60_000,
        low=100,
    )
    batch_points_max: int = setting(
        "metricsExportBatchMaxDataPoints",
        "Maximum number of series in one message to the collector.",
        default=1000,
        low=1,
    )
    log_interval_ms: int = setting(
        "metricLoggingExporterIntervalInMills",
        "Milliseconds between two logs of metrics, with LOG.",
        default=10_000,
        low=100,
    )
    is_delta: bool = setting(
        "metricsInDelta",
        "Whether OTLP_GRPC and LOG tell counters and histograms as what has come since the last time.",
        default=False,
    )
    slow_ms: int = setting(
        "slowRequestMillis",
        "Requests that took as many milliseconds are logged; 0 logs none. Pulls and pops that waited for messages do "
        "not count.",
        default=1000,
        low=0,
        live=True,
    )
    dump_path: str = setting(
        "dumpPath",
        "File that SIGUSR1 writes tasks, waiting requests and figures to; empty: the log.",
        default="",
    )
    families: FamiliesConfig = field(default_factory=FamiliesConfig)

    def __post_init__(self) -> None:
        if self.exporter.isdecimal():
            object.__setattr__(self, "exporter", _TYPES[int(self.exporter)])
        parse_pairs("metricsLabel", self.labels, _LABEL)
        parse_pairs("metricsGrpcExporterHeader", self.headers, _HEADER, is_secret=True)
        if self.exporter == OTLP_GRPC and not self.target:
            raise ConfigError(
                "metricsExporterType=OTLP_GRPC needs metricsGrpcExporterTarget, the address of a collector"
            )

    @property
    def common_labels(self) -> dict[str, str]:
        return parse_pairs("metricsLabel", self.labels, _LABEL)

    @property
    def header_pairs(self) -> dict[str, str]:
        """In lower case, as HTTP/2 wants them."""
        pairs = parse_pairs("metricsGrpcExporterHeader", self.headers, _HEADER, is_secret=True)
        return {name.lower(): value for name, value in pairs.items()}

    @property
    def http_port(self) -> int | None:
        """The port that is to be opened; None for none."""
        if self.exporter == PROM:
            return self.port
        return self.health_port or None


def pages_of(config: MonitorConfig) -> str:
    """What the port shows, for people."""
    return "/metrics, /healthz, /readyz" if config.exporter == PROM else "/healthz, /readyz"


def parse_pairs(
    key: str, text: str, name: re.Pattern[str], *, is_secret: bool = False
) -> dict[str, str]:
    """``a:1,b:2`` as a dict. Raises ConfigError."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        left, colon, right = part.partition(":")
        if not colon or not name.fullmatch(left.strip()):
            got = "what it is" if is_secret else shown(part)
            raise ConfigError(f"{key} must be name:value,name:value, not {got}")
        pairs[left.strip()] = right.strip()
    return pairs
