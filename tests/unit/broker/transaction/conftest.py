"""A broker that only checks transactions, and a producer that notes what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.unit.broker.rig import Rig, run_now

from cometmq.broker.master_duties import Duty
from cometmq.broker.transaction.transactions import Decision
from cometmq.model.address import pack_host
from cometmq.model.messages.record import Record
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC, TRANSACTION_DISCARD_TOPIC
from cometmq.store.log.new_messages import NewMessage, Stored


class TransactionRig(Rig):
    def open(self, **settings: str) -> None:
        super().open(**settings)
        self.asked = self.producer("PG", "asked")

    def master_duties(self) -> Sequence[Duty]:
        return (self.rooms.transaction.transactions,)

    def half(self, body: bytes = b"x", properties: bytes = b"", **fields: Any) -> Stored:
        message = NewMessage(
            topic=fields.pop("topic", "T"),
            queue_id=2,
            body=body,
            properties=b"UNIQ_KEY\x01K"
            + body
            + b"\x02TAGS\x01A\x02KEYS\x01k1\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
            + properties,
            keys=["K", "k1"],
            flag=7,
            sys_flag=5,
            born_timestamp=self.clock.wall_ms(),
            born_host=pack_host("10.1.2.3", 4567),
            **fields,
        )
        return self.transactions.put_half(message, is_wait=True)

    def end(self, place: Stored | Record, decision: Decision) -> Stored | None:
        half = self.transactions.half_at(place.physical_offset)
        assert half is not None
        return self.transactions.end(half, decision)

    def commit(self, place: Stored | Record) -> Stored | None:
        return self.end(place, Decision.COMMIT)

    def roll_back(self, place: Stored | Record) -> Stored | None:
        return self.end(place, Decision.ROLLBACK)

    def round(self, seconds: float = 60) -> list[Record]:
        """Time passes and the open transactions are looked at; which half messages the producer was asked about."""
        self.clock.advance(seconds)
        run_now(self.transactions.check_round())
        places = [int((command.ext or {})["commitLogOffset"]) for command in self.asked.take()]
        return [half for place in places if (half := self.transactions.half_at(place)) is not None]

    @property
    def halves(self) -> list[Record]:
        return self.records(HALF_TOPIC)

    @property
    def marks(self) -> list[bytes]:
        return [record.body for record in self.records(HALF_OP_TOPIC)]

    @property
    def delivered(self) -> list[bytes]:
        return [record.body for record in self.records("T", 2)]

    @property
    def discarded(self) -> list[bytes]:
        return [record.body for record in self.records(TRANSACTION_DISCARD_TOPIC)]


@pytest.fixture
def make_rig() -> Callable[..., TransactionRig]:
    def make(**settings: str) -> TransactionRig:
        return TransactionRig(
            {"transactionTimeOut": "6000", "transactionCheckMax": "3", **settings}
        )

    return make
