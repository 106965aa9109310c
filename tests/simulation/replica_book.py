"""What was sent to a simulated group of brokers, what was answered, and what follows for their logs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.replica_broker import FILE_BYTES, ReplicaBroker

from cometmq.model.messages.record import decode_record, peek
from cometmq.model.messages.record_layout import MAGIC_BLANK


@dataclass(slots=True)
class Sent:
    number: int
    broker: int
    at: float
    """When the client sent it."""
    wait_max: float
    """The answer comes within so many seconds, unless the broker dies."""
    life: int
    offset: int = -1
    raw: bytes = b""
    code: int | None = None
    is_sync: bool = False
    is_forgotten: bool = False
    """The broker that has to answer is gone, or stored nothing."""

    @property
    def end(self) -> int:
        return self.offset + len(self.raw)


@dataclass(slots=True)
class Book:
    sent: list[Sent] = field(default_factory=list)
    by_number: dict[int, Sent] = field(default_factory=dict)

    def add(self, sent: Sent) -> None:
        self.sent.append(sent)
        self.by_number[sent.number] = sent

    @property
    def safe(self) -> list[Sent]:
        """Answered with 0 after enough brokers had it."""
        return [one for one in self.sent if one.code == 0 and one.is_sync]

    def check_times(self, now: float) -> None:
        for one in self.sent:
            if one.code is None and not one.is_forgotten:
                assert now - one.at <= one.wait_max, f"no answer after {now - one.at} s: {one}"

    def check_known(self, broker: ReplicaBroker) -> None:
        """Every whole record of a log was sent by somebody, and is as it was."""
        store = broker.core.store
        at, end = broker.log_start, store.watermarks.dispatched.value
        while at < end:
            view = store.log_view(at, min(8, FILE_BYTES - at % FILE_BYTES))
            assert view is not None
            if len(view) < 8:
                raise AssertionError(f"no record at {at} of {broker}")
            size_bytes, magic = peek(view, 0)
            if magic == MAGIC_BLANK:
                at += FILE_BYTES - at % FILE_BYTES
                continue
            raw = store.log_view(at, size_bytes)
            assert raw is not None, (broker, at, size_bytes)
            record = decode_record(raw)
            sent = self.by_number.get(int(record.body[:6]))
            assert sent is not None, f"phantom at {at} of {broker}"
            if sent.raw:
                assert bytes(raw) == sent.raw, f"altered at {at} of {broker}: {sent}"
            at += size_bytes

    def first_record(self, broker: ReplicaBroker, at: int) -> bytes:
        """The bytes of the record that begins at an offset of a log; none when that is not known."""
        view = broker.core.store.record_at(at)
        return b"" if view is None else bytes(view)
