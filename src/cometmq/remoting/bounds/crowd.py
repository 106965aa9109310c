"""How many sockets each address has open at a port, from the moment that they are accepted."""

from __future__ import annotations

import ipaddress
import socket


def caller_of(host: str) -> str:
    """What counts as one address: of IPv6 the first 64 bits, since whoever has one address has all behind them."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))


class Crowd:
    """Counts by address; those without a socket are not kept."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, caller: str) -> int:
        return self._counts.get(caller, 0)

    def admit(self, accepted: socket.socket, caller: str) -> CountedSocket:
        """The same socket, counted until it is closed."""
        counted = CountedSocket(
            accepted.family, accepted.type, accepted.proto, fileno=accepted.detach()
        )
        self._counts[caller] = self._counts.get(caller, 0) + 1
        counted.crowd, counted.caller = self, caller
        return counted

    def leave(self, caller: str) -> None:
        left = self._counts[caller] - 1
        if left:
            self._counts[caller] = left
        else:
            del self._counts[caller]

    def __len__(self) -> int:
        return len(self._counts)


class CountedSocket(socket.socket):
    """Leaves its crowd when it is closed, by whomever: a connection has many ends, its socket has one."""

    crowd: Crowd | None = None
    caller = ""

    def close(self) -> None:
        self._leave()
        super().close()

    def detach(self) -> int:
        # How uvloop closes: it keeps the descriptor and closes that.
        self._leave()
        return super().detach()

    def __del__(self) -> None:
        # Of a connection that was given up before it was made.
        self.close()

    def _leave(self) -> None:
        crowd, self.crowd = self.crowd, None
        if crowd is not None:
            crowd.leave(self.caller)
