"""Sharing queues out on the server's side, for clients of RocketMQ 5 that leave it to the broker: 400, 401, 402.

A group pulls unless the operator said that it pops a topic. Then every client may take of all queues, or of its own
and those of some clients after it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cometmq.broker.admin.admin_replies import Saved, refuse_on_slave, reply_when_saved
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.clients.pop_sharing import share_for_pop
from cometmq.broker.clients.request_modes import RequestModes
from cometmq.broker.config.live_config import LiveConfig
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
POP: Final = "POP"
DEFAULT_STRATEGY: Final = "AVG"

QueuesOf = Callable[[str], Awaitable[Sequence[MessageQueue]]]


class AssignmentAdmin:
    """
    Args:
        saved: returns once every change made to the modes so far is on disk.
        queues_of: the readable queues of a topic on all brokers, empty when nobody knows the topic.
    """

    def __init__(
        self,
        *,
        live: LiveConfig,
        topics: TopicTable,
        clients: ClientRegistry,
        modes: RequestModes,
        saved: Saved,
        queues_of: QueuesOf,
    ) -> None:
        self._live = live
        self._topics = topics
        self._clients = clients
        self._modes = modes
        self._saved = saved
        self._queues_of = queues_of

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.QUERY_ASSIGNMENT, self.query)
        dispatcher.add(RequestCode.SET_MESSAGE_REQUEST_MODE, self.set_mode)
        dispatcher.add(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, self.all_modes)

    def query(self, connection: Connection, command: Command) -> Awaitable[Command]:
        return self._assigned(command, QueryAssignmentBody.decode(command.body))

    def set_mode(self, connection: Connection, command: Command) -> Awaitable[Command]:
        refuse_on_slave(self._live.current.identity)
        asked = SetMessageRequestModeBody.decode(command.body)
        refuse_on_slave(self._live.current.identity)
        if asked.topic.startswith(RETRY_PREFIX):
            raise Refused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if self._topics.get(asked.topic) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{asked.topic}] not exist")
        if fault := group_fault(asked.consumer_group):
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        if asked.mode not in (PULL, POP):
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"expected mode {PULL} or {POP}, got {asked.mode!r}"
            )
        self._modes.set(asked)
        log.info(
            "request mode set topic=%s group=%s mode=%s by=%s",
            asked.topic,
            asked.consumer_group,
            asked.mode,
            connection.peer,
        )
        return reply_when_saved(self._saved, command.reply())

    def all_modes(self, connection: Connection, command: Command) -> Command:
        return command.reply(body=self._modes.encode())

    async def _assigned(self, command: Command, question: QueryAssignmentBody) -> Command:
        shared = await self._share(question)
        reply = QueryAssignmentReply()
        # No list at all tells the client to keep what it has; an empty one takes everything away.
        if shared is not None:
            mode, queues = shared
            reply.message_queue_assignments = [
                QueueAssignment(message_queue=queue, mode=mode) for queue in queues
            ]
        return command.reply(body=reply.encode())

    async def _share(
        self, question: QueryAssignmentBody
    ) -> tuple[str, Sequence[MessageQueue]] | None:
        queues = await self._queues_of(question.topic)
        if not queues:
            return None
        if question.message_model == MessageModel.BROADCASTING:
            return PULL, sorted(queues)
        group = self._clients.consumer_group(question.consumer_group)
        if group is None:
            return None
        strategy = question.strategy_name or DEFAULT_STRATEGY
        clients = group.client_ids()
        mode = self._modes.get(question.topic, question.consumer_group)
        if mode is not None and mode.mode == POP:
            count = mode.pop_share_queue_num
            return POP, share_for_pop(strategy, question.client_id, queues, clients, count)
        allocated = allocate(strategy, question.client_id, queues, clients)
        return None if allocated is None else (PULL, allocated)
