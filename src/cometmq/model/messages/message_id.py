"""Message ids: where a record is stored (offset id), and who created it when (unique key)."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.errors import UsageError
from cometmq.model.address import host_text
from cometmq.model.ids import PhysicalOffset


@dataclass(frozen=True, slots=True)
class OffsetId:
    """Store host and physical offset of a record."""

    host: bytes
    physical_offset: PhysicalOffset

    @property
    def address(self) -> str:
        return host_text(self.host)


def offset_id_text(host: bytes, physical_offset: int) -> str:
    """Upper-case hex: 32 characters for IPv4, 56 for IPv6."""
    return (host + physical_offset.to_bytes(8, "big")).hex().upper()


def parse_offset_id(text: str) -> OffsetId:
    """Raises UsageError if ``text`` is not an offset id."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(text) not in (32, 56) or len(raw) * 2 != len(text):
        raise UsageError(f"expected a message id of 32 or 56 hex digits, got {text!r}")
    return OffsetId(raw[:-8], PhysicalOffset(int.from_bytes(raw[-8:], "big")))
