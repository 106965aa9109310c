"""CRC-32, as RocketMQ has it in records and files.

Intel's library computes it in a fifth of zlib's time for a kilobyte, in a fourteenth for 64 KB, with the same result.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
