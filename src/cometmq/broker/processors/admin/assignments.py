"""Sharing queues out on the server's side, for clients of RocketMQ 5 that leave it to the broker: 400, 401, 402.

Every assignment is to be consumed by pulling.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.request_modes import RequestModes
from cometmq.model.allocation import allocate
from cometmq.model.consumption import MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import RETRY_PREFIX, group_fault
from cometmq.protocol.bodies.pop import (
    QueryAssignmentBody,
    QueryAssignmentReply,
    QueueAssignment,
    SetMessageRequestModeBody,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

PULL: Final = "PULL"
DEFAULT_STRATEGY: Final = "AVG"

QueuesOf = Callable[[str], Awaitable[Sequence[MessageQueue]]]


class AssignmentAdmin:
    """Args: queues_of: the readable queues of a topic on all brokers, empty when nobody knows the topic."""

    def __init__(
        self,
        *,
        topics: TopicTable,
        clients: ClientRegistry,
        modes: RequestModes,
        queues_of: QueuesOf,
    ) -> None:
        self._topics = topics
        self._clients = clients
        self._modes = modes
        self._queues_of = queues_of

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.QUERY_ASSIGNMENT, self.query)
        dispatcher.add(RequestCode.SET_MESSAGE_REQUEST_MODE, self.set_mode)
        dispatcher.add(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, self.all_modes)

    def query(self, connection: Connection, command: Command) -> Awaitable[Command]:
        return self._assigned(command, QueryAssignmentBody.decode(command.body))

    def set_mode(self, connection: Connection, command: Command) -> Command:
        wish = SetMessageRequestModeBody.decode(command.body)
        if wish.topic.startswith(RETRY_PREFIX):
            raise Refused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if self._topics.get(wish.topic) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{wish.topic}] not exist")
        if fault := group_fault(wish.consumer_group):
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        if wish.mode != PULL:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"mode {wish.mode} is not available on this broker"
            )
        self._modes.set(wish)
        log.info(
            "request mode set topic=%s group=%s mode=%s by=%s",
            wish.topic,
            wish.consumer_group,
            wish.mode,
            connection.peer,
        )
        return command.reply()

    def all_modes(self, connection: Connection, command: Command) -> Command:
        return command.reply(body=self._modes.modes.encode())

    async def _assigned(self, command: Command, question: QueryAssignmentBody) -> Command:
        queues = await self._share(question)
        reply = QueryAssignmentReply()
        # No list at all tells the client to keep what it has; an empty one takes everything away.
        if queues is not None:
            reply.message_queue_assignments = [
                QueueAssignment(message_queue=queue, mode=PULL) for queue in queues
            ]
        return command.reply(body=reply.encode())

    async def _share(self, question: QueryAssignmentBody) -> Sequence[MessageQueue] | None:
        queues = await self._queues_of(question.topic)
        if not queues:
            return None
        if question.message_model == MessageModel.BROADCASTING:
            return sorted(queues)
        group = self._clients.consumer_group(question.consumer_group)
        if group is None:
            return None
        strategy = question.strategy_name or DEFAULT_STRATEGY
        return allocate(strategy, question.client_id, queues, group.client_ids())
