"""Asks producers what became of their transactions: CHECK_TRANSACTION_STATE, one-way. They answer with a 37."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from cometmq.broker.access.may_touch import MayPublish
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.transaction.transaction_forms import question_body
from cometmq.model.messages.properties import PRODUCER_GROUP, REAL_TOPIC, UNIQ_KEY
from cometmq.model.messages.record import Record
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.transaction import CheckTransactionStateHeader
from cometmq.remoting.connection import Connection


class ProducerQuestions:
    """Any producer of the group will do, for it answers for the whole group; they take turns.

    The question has the message in it, and anybody may call itself a producer of any group. So only those are asked
    that may publish to the message's topic, and may end its transaction.

    Args:
        may_publish: whether the account behind a connection may publish to a topic.
    """

    def __init__(self, clients: ClientRegistry, broker_name: str, may_publish: MayPublish) -> None:
        self._clients = clients
        self._may_publish = may_publish
        self._broker_name = broker_name
        self._turns = count()

    def can_ask(self, group: str, topic: str) -> bool:
        return any(True for _ in self._producers(group, topic))

    def ask(self, half: Record) -> None:
        group = half.properties.get(PRODUCER_GROUP, "")
        connections = list(self._producers(group, half.properties.get(REAL_TOPIC, "")))
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

    def _producers(self, group: str, topic: str) -> Iterator[Connection]:
        return (
            connection
            for connection in self._clients.producers.get(group, ())
            if not connection.is_closed and self._may_publish(connection, topic)
        )
