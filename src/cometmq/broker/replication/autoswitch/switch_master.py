"""How a master under a controller speaks to one slave. No I/O.

Whoever only wants to read a piece of the log, to heal a record, speaks the default wire and is answered so: what he
says first no slave says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.autoswitch.epochs import NO_EPOCH, Epoch, EpochTable
from cometmq.broker.replication.autoswitch.switch_wire import (
    STATE,
    SlaveFrames,
    encode_master_handshake,
    encode_transfer,
)
from cometmq.broker.replication.ha_wire import ONLY_READS, REPORT, ReportReader, SlaveIdentity

_READER: Final = REPORT.pack(ONLY_READS)[: STATE.size]


@dataclass(frozen=True, slots=True)
class Reign:
    """What a master tells its slaves of itself, now.

    Args:
        is_master: a broker that is none must not tell its epochs: who believes them cuts his log.
        confirmed: up to where all that count have the log.
    """

    is_master: Callable[[], bool]
    epochs: Callable[[], EpochTable]
    log_end: Callable[[], int]
    confirmed: Callable[[], int]


class SwitchWire:
    """One connection. A ``master_link.MasterWire``."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign
        self._frames = SlaveFrames()
        self._first = b""
        self._reader: ReportReader | None = None
        self._words = b""
        self._told_confirmed = 0

    @property
    def has_news(self) -> bool:
        """More of the log is confirmed than the slave knows, and so shows its readers."""
        return self._reader is None and self._reign.confirmed() > self._told_confirmed

    @property
    def slave(self) -> SlaveIdentity | None:
        return self._frames.slave

    @property
    def only_reads(self) -> bool:
        return self._reader is not None

    def feed(self, data: bytes) -> int | None:
        if self._reader is not None:
            return self._reader.feed(data)
        if len(self._first) < STATE.size:
            self._first = data = self._first + data
            if len(data) < STATE.size:
                return None
            if data.startswith(_READER):
                self._reader = ReportReader()
                offset = self._reader.feed(data)
                if not self._reader.only_reads and offset is not None:
                    raise RemoteProtocolError("expected a slave, or somebody who only reads")
                return offset
        handshakes, report = self._frames.feed(data)
        if handshakes:
            self._greet()
        return report

    def take_words(self) -> bytes:
        words, self._words = self._words, b""
        return words

    def fit(self, offset: int, size_bytes: int) -> int:
        if self._reader is not None:
            return size_bytes
        found = self._reign.epochs().at(offset)
        if found is None:
            return 0
        _, end = found
        return size_bytes if end is None else min(size_bytes, end - offset)

    def header(self, offset: int, size_bytes: int) -> bytes:
        if self._reader is not None:
            return self._reader.header(offset, size_bytes)
        found = self._reign.epochs().at(offset)
        epoch = Epoch(NO_EPOCH, 0) if found is None else found[0]
        self._told_confirmed = self._reign.confirmed()
        return encode_transfer(offset, size_bytes, epoch, self._told_confirmed)

    def _greet(self) -> None:
        reign = self._reign
        if not reign.is_master():
            raise RemoteProtocolError("this broker is no master")
        self._words = encode_master_handshake(reign.log_end(), reign.epochs())
