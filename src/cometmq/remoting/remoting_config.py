"""Settings of the wire, with RocketMQ's keys where it has one."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.protocol.frame import FRAME_BYTES_MAX

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The bounds of one connection, whichever side opened it."""

    frame_bytes_max: int = FRAME_BYTES_MAX
    frame_seconds_max: float = math.inf
    received_bytes_max: int = sys.maxsize
    """Of all connections of an endpoint together."""
    idle_seconds_max: float = 120.0
    outgoing_high_bytes: int = 1 * _MIB
    outgoing_low_bytes: int = 256 * _KIB
    outgoing_bytes_max: int = 128 * _MIB
    slow_reader_seconds_max: float = 30.0
    close_seconds_max: float = 5.0
    calls_max: int = 65535
    handlers_max: int = 64
    busy_poll_micros: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotingServerConfig:
    """How a server listens and what it allows each peer."""

    idle_seconds_max: int = setting(
        "serverChannelMaxIdleTimeSeconds",
        "Seconds without a byte in either direction after which a connection is closed.",
        default=120,
        low=1,
        next_start=True,
    )
    backlog: int = setting(
        "serverSocketBacklog",
        "Maximum number of connections that the kernel queues until they are accepted.",
        default=1024,
        low=1,
        next_start=True,
    )
    send_buffer_bytes: int = setting(
        "serverSocketSndBufSize",
        "Kernel send buffer in bytes; 0 leaves it to the kernel.",
        default=0,
        low=0,
        next_start=True,
    )
    receive_buffer_bytes: int = setting(
        "serverSocketRcvBufSize",
        "Kernel receive buffer in bytes; 0 leaves it to the kernel.",
        default=0,
        low=0,
        next_start=True,
    )
    outgoing_high_bytes: int = setting(
        "writeBufferHighWaterMark",
        "Unsent bytes above which the server stops reading from a peer; 0 means 1 MiB.",
        default=0,
        low=0,
        next_start=True,
    )
    outgoing_low_bytes: int = setting(
        "writeBufferLowWaterMark",
        "Unsent bytes below which it reads from the peer again; 0 means a quarter of the high mark.",
        default=0,
        low=0,
        next_start=True,
    )
    calls_max: int = setting(
        "serverAsyncSemaphoreValue",
        "Maximum number of unanswered calls of the server per connection.",
        default=64,
        low=1,
        next_start=True,
    )
    frame_bytes_max: int = setting(
        "frameMaxLength",
        "Maximum size of a frame, in bytes; a larger one closes the connection.",
        default=FRAME_BYTES_MAX,
        low=1024,
        high=0x7FFFFFFF,
    )
    frame_seconds_max: int = setting(
        "serverFrameTimeoutSeconds",
        "Maximum time from the first to the last byte of a frame; a slower peer is disconnected.",
        default=60,
        low=1,
    )
    received_bytes_max: int = setting(
        "serverReceivedBytesMax",
        "Maximum number of bytes received but not yet handled, over all connections of a port. "
        "Above it, the connections whose frames have been incomplete longest are closed.",
        default=256 * _MIB,
        low=32 * _MIB,
    )
    connections_max: int = setting(
        "serverConnectionsMax",
        "Maximum number of open connections; further ones are refused.",
        default=16384,
        low=1,
    )
    connections_per_address_max: int = setting(
        "serverConnectionsPerAddressMax",
        "Maximum number of open connections from one address (IPv6: one /64 network); further ones are refused.",
        default=8192,
        low=1,
    )
    requests_per_second_max: int = setting(
        "clientRequestsPerSecondMax",
        "Requests per second of one account, or of one address where nobody is known; further ones are answered with "
        "SYSTEM_BUSY. 0 turns it off.",
        default=0,
        low=0,
        live=True,
    )
    bytes_per_second_max: int = setting(
        "clientBytesPerSecondMax",
        "The same for the bytes of the bodies that one account or address sends.",
        default=0,
        low=0,
        live=True,
    )
    handlers_max: int = setting(
        "serverConcurrentRequestsMax",
        "Maximum number of requests of one connection that are handled in the background at once.",
        default=64,
        low=1,
    )
    outgoing_bytes_max: int = setting(
        "serverOutgoingBytesMax",
        "Unsent bytes at which a peer that does not read is disconnected.",
        default=128 * _MIB,
        low=1 * _MIB,
    )
    slow_reader_seconds_max: int = setting(
        "serverSlowReaderTimeoutSeconds",
        "Seconds that unsent bytes may stay above the high mark before the peer is disconnected.",
        default=30,
        low=1,
    )
    busy_poll_micros: int = setting(
        "serverBusyPollMicros",
        "Microseconds to busy-poll for more requests before the event loop sleeps, eight times as long while requests"
        " follow each other that closely. 0 turns it off; it is always off on a machine with one core.",
        default=50,
        low=0,
        high=1_000_000,
    )
    handshake_millis_max: int = setting(
        "tlsHandshakeTimeoutMillis",
        "Timeout of a TLS handshake, in milliseconds.",
        default=10_000,
        low=1,
    )
    handshakes_max: int = setting(
        "tlsHandshakesMax",
        "Maximum number of TLS handshakes under way at once. One more ends the one that has taken longest.",
        default=256,
        low=1,
    )

    def __post_init__(self) -> None:
        high, low = self._water_marks()
        if low > high:
            raise ConfigError(
                f"writeBufferLowWaterMark ({low}) must not be above writeBufferHighWaterMark ({high})"
            )

    @property
    def limits(self) -> ConnectionLimits:
        high, low = self._water_marks()
        return ConnectionLimits(
            frame_bytes_max=self.frame_bytes_max,
            frame_seconds_max=self.frame_seconds_max,
            received_bytes_max=max(self.received_bytes_max, 2 * self.frame_bytes_max),
            idle_seconds_max=self.idle_seconds_max,
            outgoing_high_bytes=high,
            outgoing_low_bytes=low,
            outgoing_bytes_max=self.outgoing_bytes_max,
            slow_reader_seconds_max=self.slow_reader_seconds_max,
            calls_max=self.calls_max,
            handlers_max=self.handlers_max,
            busy_poll_micros=self.busy_poll_micros if (os.cpu_count() or 1) > 1 else 0,
        )

    def _water_marks(self) -> tuple[int, int]:
        high = self.outgoing_high_bytes or 1 * _MIB
        return high, self.outgoing_low_bytes or high // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotingClientConfig:
    """How a client connects and how much it may have under way."""

    connect_millis_max: int = setting(
        "connectTimeoutMillis",
        "Timeout for opening a connection, in milliseconds.",
        default=3000,
        low=1,
        next_start=True,
    )
    idle_seconds_max: int = setting(
        "clientChannelMaxIdleTimeSeconds",
        "Seconds without a byte in either direction after which a connection is closed.",
        default=120,
        low=1,
        next_start=True,
    )
    calls_max: int = setting(
        "clientAsyncSemaphoreValue",
        "Maximum number of unanswered calls per connection.",
        default=65535,
        low=1,
        next_start=True,
    )
    send_buffer_bytes: int = setting(
        "clientSocketSndBufSize",
        "Kernel send buffer in bytes; 0 leaves it to the kernel.",
        default=0,
        low=0,
        next_start=True,
    )
    receive_buffer_bytes: int = setting(
        "clientSocketRcvBufSize",
        "Kernel receive buffer in bytes; 0 leaves it to the kernel.",
        default=0,
        low=0,
        next_start=True,
    )

    # Below: fields without a key. A client embedded in a broker shares the broker's file, where the
    # keys already mean the server side.
    frame_bytes_max: int = FRAME_BYTES_MAX
    handlers_max: int = 64
    outgoing_high_bytes: int = 1 * _MIB
    """Unsent bytes above which callers wait. Of 1, until all has left; TLS transports take 0 for always."""

    @property
    def limits(self) -> ConnectionLimits:
        return ConnectionLimits(
            frame_bytes_max=self.frame_bytes_max,
            idle_seconds_max=self.idle_seconds_max,
            outgoing_high_bytes=self.outgoing_high_bytes,
            outgoing_low_bytes=self.outgoing_high_bytes // 4,
            calls_max=self.calls_max,
            handlers_max=self.handlers_max,
        )
