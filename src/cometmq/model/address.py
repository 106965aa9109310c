"""Host addresses as the record stores them (4 or 16 address bytes + 4 port bytes) and as text (``ip:port``)."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

from cometmq.base.errors import UsageError

_NO_HOST: Final = re.compile(r"[\s/,;\0]")
"""What stands in no host: in a URL, between several addresses in a row, or in what a hostile peer sent."""


@lru_cache(maxsize=4096)
def pack_host(ip: str, port: int) -> bytes:
    """8 bytes for IPv4, 20 for IPv6."""
    try:
        address = ipaddress.ip_address(ip.split("%")[0])
    except ValueError:
        raise UsageError(f"expected an IP address, got {ip!r}") from None
    # A socket that serves both families shows an IPv4 peer as ::ffff:1.2.3.4; Java stores such a host as IPv4.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).packed + port.to_bytes(4, "big")


def unpack_host(packed: bytes) -> tuple[str, int]:
    """The inverse of ``pack_host``."""
    return str(ipaddress.ip_address(bytes(packed[:-4]))), int.from_bytes(packed[-4:], "big")


def host_text(packed: bytes) -> str:
    """``ip:port``, IPv6 in brackets."""
    return join_address(*unpack_host(packed))


def join_address(host: str, port: int) -> str:
    """``host:port``, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port`` into its two parts. Raises UsageError."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isdecimal() and 0 < int(port) < 65536
    if not colon or not is_port or not _can_be_host(host):
        several = ", several separated by ';'" if "," in text else ""
        raise UsageError(f"expected an address like 127.0.0.1:9876{several}, got {text!r}")
    return host, int(port)


def _can_be_host(text: str) -> bool:
    """Whether the system could be asked for it: it takes no zero characters, and names in the form of IDNA alone."""
    if not text or _NO_HOST.search(text):
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def split_addresses(text: str) -> list[str]:
    """The addresses in a ``;``-separated list, without blanks and empty parts."""
    return [part.strip() for part in text.split(";") if part.strip()]


def is_loopback(host: str) -> bool:
    """Whether a host can only be reached from this machine. A name counts as reachable from elsewhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
