"""Looks at the certificate that a server presents, without asking the server anything."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from cometmq.model.address import split_address

PROBE_SECONDS_MAX: Final = 5.0


async def connect_and_leave(
    address: str, context: ssl.SSLContext | None = None
) -> ssl.SSLObject | None:
    """What was negotiated; None without a context. Raises OSError, of which TimeoutError and SSLError are kinds."""
    host, port = split_address(address)
    async with asyncio.timeout(PROBE_SECONDS_MAX):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    seen: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    writer.transport.abort()
    return seen


def trusting_context() -> ssl.SSLContext:
    """Takes any certificate: it is only looked at."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def can_read() -> bool:
    """Whether the package that reads certificates is installed."""
    try:
        import cryptography.x509  # noqa: F401
    except ImportError:
        return False
    return True


def end_ms(der: bytes) -> int:
    """Until when it is valid. Raises ValueError: it is none."""
    from cryptography import x509

    certificate = x509.load_der_x509_certificate(der)
    return int(certificate.not_valid_after_utc.timestamp() * 1000)
