"""The name in the certificate of a peer."""

from __future__ import annotations

import asyncio
from typing import Any


def peer_subject(transport: asyncio.BaseTransport) -> str:
    """The common name (CN) of the certificate that the peer has proved to own; empty without exactly one.

    A certificate that was not verified against a trusted authority counts as none.
    """
    connection: Any = transport.get_extra_info("ssl_object")
    if connection is None:
        return ""
    certificate = connection.getpeercert() or {}
    names = [
        value
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    return str(names[0]) if len(names) == 1 else ""
