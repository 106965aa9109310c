"""Asks producers what became of their transactions: CHECK_TRANSACTION_STATE, one-way. They answer with a 37."""

from __future__ import annotations

from itertools import count

from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.transaction.transaction_forms import question_body
from cometmq.model.messages.properties import PRODUCER_GROUP, UNIQ_KEY
from cometmq.model.messages.record import Record
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.transaction import CheckTransactionStateHeader


class ProducerQuestions:
    """Any producer of the group will do, for it answers for the whole group; they take turns."""

    def __init__(self, clients: ClientRegistry, broker_name: str) -> None:
        self._clients = clients
        self._broker_name = broker_name
        self._turns = count()

    def can_ask(self, group: str) -> bool:
        return any(not one.is_closed for one in self._clients.producers.get(group, ()))

    def ask(self, half: Record) -> None:
        group = half.properties.get(PRODUCER_GROUP, "")
        connections = [
            connection
            for connection in self._clients.producers.get(group, ())
            if not connection.is_closed
        ]
        assert connections, group
        unique_key = half.properties.get(UNIQ_KEY)
        header = CheckTransactionStateHeader(
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.physical_offset,
            msg_id=unique_key,
            transaction_id=unique_key,
            offset_msg_id=half.offset_id,
            broker_name=self._broker_name,
        )
        connection = connections[next(self._turns) % len(connections)]
        connection.oneway(
            Command(
                code=RequestCode.CHECK_TRANSACTION_STATE,
                ext=encode_fields(header),
                body=question_body(half),
            )
        )
