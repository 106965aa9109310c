"""Sends metrics to a collector by OTLP over gRPC. Needs ``pip install 'cometmq[otlp]'``.

The calls block: they are for a worker thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from cometmq.base.errors import CometError, ConfigError


class NotExported(CometError):
    """A collector did not take what it was sent."""


class OtlpSender:
    """Raises ConfigError: the library is missing, or the target is no address."""

    def __init__(self, target: str, headers: Mapping[str, str], timeout_seconds: float) -> None:
        try:
            import grpc
            from google.protobuf import json_format
            from opentelemetry.proto.collector.metrics.v1 import (
                metrics_service_pb2,
                metrics_service_pb2_grpc,
            )
        except ImportError as error:
            raise ConfigError(
                f"metricsExporterType=OTLP_GRPC needs pip install 'cometmq[otlp]': {error}"
            ) from None
        self._grpc = grpc
        self._parse = json_format.ParseDict
        self._request = metrics_service_pb2.ExportMetricsServiceRequest
        self._headers = tuple(headers.items())
        self._timeout_seconds = timeout_seconds
        address, is_secure = _address(target)
        self._channel = (
            grpc.secure_channel(address, grpc.ssl_channel_credentials())
            if is_secure
            else grpc.insecure_channel(address)
        )
        stub: Any = metrics_service_pb2_grpc.MetricsServiceStub
        self._stub = stub(self._channel)
        self.target = target

    def send(self, request: Mapping[str, Any]) -> None:
        """Send one request and wait for the answer. Raises NotExported."""
        message = self._parse(request, self._request())
        try:
            reply = self._stub.Export(
                message,
                timeout=self._timeout_seconds,
                metadata=self._headers,
                compression=self._grpc.Compression.Gzip,
            )
        except self._grpc.RpcError as error:
            raise NotExported(f"{error.code().name}: {error.details()}") from None
        if rejected := reply.partial_success.rejected_data_points:
            raise NotExported(
                f"{rejected} series rejected: {reply.partial_success.error_message[:200]}"
            )

    def close(self) -> None:
        self._channel.close()


def _address(target: str) -> tuple[str, bool]:
    """Host and port of a target, and whether to use TLS. Without a scheme it means https, as in RocketMQ."""
    parts = urlsplit(target if target.startswith("http") else f"https://{target}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise ConfigError(
            f"metricsGrpcExporterTarget must be host:port, http://host:port or https://host:port, not {target!r}"
        )
    return parts.netloc.rpartition("@")[2], parts.scheme == "https"
