"""Cleaning up by hand: requests 306, 316 and 329."""

from __future__ import annotations

import logging

from cometmq.broker.admin.admin_replies import system_topic_names
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.names import is_system_topic
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")


class MaintenanceAdmin:
    def __init__(self, *, live: LiveConfig, store: MessageStore, topics: TopicTable) -> None:
        self._live = live
        self._store = store
        self._topics = topics

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, self.clean_expired_queues)
        dispatcher.add(RequestCode.CLEAN_UNUSED_TOPIC, self.clean_unused_topics)
        dispatcher.add(RequestCode.DELETE_EXPIRED_COMMITLOG, self.delete_expired_log)

    def clean_expired_queues(self, connection: Connection, command: Command) -> Command:
        """Queues whose newest message has left the log with its file."""
        self._store.clean_expired_queues()
        log.info("expired queues cleaned by=%s", connection.peer)
        return command.reply()

    def clean_unused_topics(self, connection: Connection, command: Command) -> Command:
        """Queues of topics that no longer exist. The broker's own topics stay, created or not."""
        identity = self._live.current.identity
        if identity.is_slave:
            # The messages of a topic reach a slave before its entry in the table does. Queues of deleted topics go when
            # its table follows the master's. No refusal: mqadmin asks all brokers, and would stop here.
            log.info("unused topics not cleaned, this is a slave by=%s", connection.peer)
            return command.reply()
        keep = set(self._topics.names()) | system_topic_names(identity)
        keep.update(topic for topic in self._store.topics() if is_system_topic(topic))
        count = self._store.clean_unused(keep)
        log.info("unused topics cleaned count=%d by=%s", count, connection.peer)
        return command.reply()

    def delete_expired_log(self, connection: Connection, command: Command) -> Command:
        self._store.delete_expired_files()
        log.info("expired log files deleted by=%s", connection.peer)
        return command.reply()
