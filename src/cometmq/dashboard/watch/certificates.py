"""When the certificates end that the dashboard meets: those in its own files, and those of servers asked by TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cometmq.base.ports import Clock
from cometmq.remoting.certificates.probe import (
    can_read,
    connect_and_leave,
    end_ms,
    trusting_context,
)

log = logging.getLogger("cometmq.dashboard")

LOOK_SECONDS: Final = 3600.0
SERVERS_MAX: Final = 1000
AT_ONCE: Final = 8


class Certificates:
    """
    Args:
        files: PEM files of the dashboard itself; empty names are left out.
        has_tls: whether the servers are asked by TLS; if not, they are not looked at.
    """

    def __init__(self, files: Sequence[str], *, has_tls: bool, clock: Clock) -> None:
        self.ends: dict[str, int] = {}
        """In ms, by the address of a server or the name of a file. What cannot be looked at keeps its last value."""
        self._files = [Path(one) for one in files if one]
        self._has_tls = has_tls
        self._clock = clock
        self._looked_at: float | None = None
        self._looking: asyncio.Task[None] | None = None
        if (has_tls or self._files) and not can_read():
            log.warning("certificates not watched reason=%r", "pip install 'cometmq[accounts]'")
            self._files, self._has_tls = [], False

    def begin(self, addresses: Iterable[str]) -> None:
        """Look, in a task of its own, unless that was done within the last hour."""
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return
        if self._looking is not None and not self._looking.done():
            return
        self._looked_at = now
        wanted = sorted(set(addresses))[:SERVERS_MAX] if self._has_tls else []
        self._looking = asyncio.create_task(self.look(wanted))

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def look(self, addresses: Sequence[str]) -> None:
        found: dict[str, int] = {}
        for path in self._files:
            try:
                found[path.name] = await asyncio.to_thread(_end_of_file, path)
            except (OSError, ValueError) as error:
                log.warning("certificate not read file=%s reason=%s", path, error)
        room = asyncio.Semaphore(AT_ONCE)

        async def one(address: str) -> None:
            async with room:
                try:
                    seen = await connect_and_leave(address, trusting_context())
                    der = seen.getpeercert(binary_form=True) if seen else None
                    if der:
                        found[address] = end_ms(der)
                except (OSError, ValueError) as error:
                    # A server that is down is told of elsewhere.
                    log.debug("certificate not seen server=%s reason=%s", address, error)

        await asyncio.gather(*(one(address) for address in addresses))
        names = {*addresses, *(path.name for path in self._files)}
        kept = {name: end for name, end in self.ends.items() if name in names}
        self.ends = kept | found


def _end_of_file(path: Path) -> int:
    """Of its first certificate, which is the one that is presented."""
    text = path.read_text(encoding="ascii", errors="replace")
    begin = text.find("-----BEGIN CERTIFICATE-----")
    end = text.find("-----END CERTIFICATE-----", begin)
    if begin < 0 or end < 0:
        raise ValueError("there is no certificate in it")
    return end_ms(ssl.PEM_cert_to_DER_cert(text[begin:end] + "-----END CERTIFICATE-----\n"))
