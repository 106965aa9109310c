"""END_TRANSACTION: what a producer says became of its local transaction. One-way as a rule; if not, answered.

A transaction that was ended before stays as it was, and the answer says so: a repeated request does no harm.
RESUME_CHECK_HALF_MESSAGE: an operator has a transaction checked anew, one that was discarded as a rule.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from cometmq.access.rules.need import PUB
from cometmq.base.errors import UsageError
from cometmq.broker.access.may_touch import MayTouch, topic_of
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.send.store_refusals import refusal_of
from cometmq.broker.transaction.transactions import Decision, Transactions
from cometmq.model.flags import SysFlag
from cometmq.model.messages.message_id import parse_offset_id
from cometmq.model.messages.properties import PRODUCER_GROUP, UNIQ_KEY
from cometmq.model.messages.record import Record
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.transaction import (
    EndTransactionHeader,
    ResumeCheckHalfMessageHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.log.new_messages import Stored

log = logging.getLogger("cometmq.broker")

_S = TypeVar("_S", Stored, Stored | None)

_DECISIONS: Final = {
    int(SysFlag.TRANSACTION_COMMIT): Decision.COMMIT,
    int(SysFlag.TRANSACTION_ROLLBACK): Decision.ROLLBACK,
}


class TransactionProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        transactions: Transactions,
        durability: Durability,
        may_touch: MayTouch,
    ) -> None:
        self._may_touch = may_touch
        self._live = live
        self._transactions = transactions
        self._durability = durability

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.END_TRANSACTION, self.end)
        dispatcher.add(RequestCode.RESUME_CHECK_HALF_MESSAGE, self.check_anew)

    def check_anew(self, connection: Connection, command: Command) -> Command | None:
        header = decode_fields(ResumeCheckHalfMessageHeader, command.ext)
        self._require_master()
        try:
            physical_offset = parse_offset_id(header.msg_id or "").physical_offset
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        stored = self._stored(lambda: self._transactions.check_anew(physical_offset))
        log.info("transaction checked anew message=%s by=%s", header.msg_id, connection.peer)
        return self._durability.reply(connection, command, stored.end_offset)

    def end(self, connection: Connection, command: Command) -> Command | None:
        header = decode_fields(EndTransactionHeader, command.ext)
        self._require_master()
        decision = _DECISIONS.get(header.commit_or_rollback)
        if decision is None:
            # The producer does not know (yet). RocketMQ leaves this without an answer, too.
            log.info(
                "transaction undecided group=%s queue_offset=%d peer=%s",
                header.producer_group,
                header.tran_state_table_offset,
                connection.peer,
            )
            return None
        half = self._half(header)
        self._may_touch(connection, command, topic_of(half), PUB)
        stored = self._stored(lambda: self._transactions.end(half, decision))
        if stored is None:
            log.info(
                "transaction ended before group=%s queue_offset=%d ignored=%s",
                header.producer_group,
                header.tran_state_table_offset,
                decision.value,
            )
            return command.reply(
                ResponseCode.SUCCESS,
                "the transaction was ended before; the first decision counts",
            )
        return self._durability.reply(connection, command, stored.end_offset)

    def _require_master(self) -> None:
        if self._live.current.identity.is_slave:
            raise Refused(
                ResponseCode.SLAVE_NOT_AVAILABLE,
                "Transaction message only process in the master node.",
            )

    def _stored(self, put: Callable[[], _S]) -> _S:
        """What ``put`` returns. Raises Refused when the store does not take it."""
        try:
            return put()
        except Exception as error:
            refusal = refusal_of(error, self._live.current.store.log.message_bytes_max)
            if refusal is None:
                raise
            raise refusal from error

    def _half(self, header: EndTransactionHeader) -> Record:
        half = self._transactions.half_at(header.commit_log_offset)
        if half is None:
            fault = "Find prepared transaction message failed"
        elif half.properties.get(PRODUCER_GROUP) != header.producer_group:
            fault = "The producer group wrong"
        elif half.queue_offset != header.tran_state_table_offset:
            fault = "The transaction state table offset wrong"
        elif not _names(header, half):
            fault = "another message is there"
        else:
            return half
        log.warning(
            "transaction not ended group=%s queue_offset=%d physical_offset=%d reason=%s",
            header.producer_group,
            header.tran_state_table_offset,
            header.commit_log_offset,
            fault,
        )
        raise Refused(ResponseCode.SYSTEM_ERROR, fault)


def _names(header: EndTransactionHeader, half: Record) -> bool:
    """Whether the ids of a request, if it has any, are those of the message at the place that it names.

    When a broker takes over from another with less of its log, new messages come to the places of those it never got,
    of the same group, too. RocketMQ goes by the place alone.
    """
    unique_key = half.properties.get(UNIQ_KEY)
    ids = {one for one in (header.msg_id, header.transaction_id) if one}
    return not ids or unique_key is None or not ids.isdisjoint({unique_key, half.offset_id})
