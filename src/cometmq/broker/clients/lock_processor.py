"""Locks of queues that are consumed in order: LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

from __future__ import annotations

from cometmq.broker.clients.queue_locks import QueueLocks
from cometmq.protocol.bodies.lock import LockBatchBody, LockBatchReply
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class LockProcessor:
    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.LOCK_BATCH_MQ, self.lock)
        dispatcher.add(RequestCode.UNLOCK_BATCH_MQ, self.unlock)

    def lock(self, connection: Connection, command: Command) -> Command:
        wanted = LockBatchBody.decode(command.body)
        granted = self._locks.lock(wanted.consumer_group, wanted.client_id, wanted.mq_set)
        return command.reply(body=LockBatchReply(lock_ok_mq_set=granted).encode())

    def unlock(self, connection: Connection, command: Command) -> Command:
        given = LockBatchBody.decode(command.body)
        self._locks.unlock(given.consumer_group, given.client_id, given.mq_set)
        return command.reply()
