"""The root of the room for clients: heartbeats, locks, sharing of queues, and what operators ask about clients."""

from __future__ import annotations

from cometmq.broker.access.may_touch import AccountOf
from cometmq.broker.admin.admin_replies import Saved
from cometmq.broker.clients.assignment_requests import AssignmentAdmin, QueuesOf
from cometmq.broker.clients.client_processor import ClientProcessor
from cometmq.broker.clients.connection_requests import ConnectionAdmin
from cometmq.broker.clients.consumer_notifier import ConsumerNotifier
from cometmq.broker.clients.forwarded_requests import ForwardingAdmin
from cometmq.broker.clients.lock_processor import LockProcessor
from cometmq.broker.clients.queue_locks import QueueLocks
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.core import BrokerCore
from cometmq.broker.filters.functions.pool import FilterFunctions
from cometmq.broker.request_ports import RequestPorts


class ClientRoom:
    """
    Args:
        functions: know which Python functions a group may filter by.
        saved: returns once every change made to the tables so far is on disk.
        queues_of: the readable queues of a topic on all brokers, empty when nobody knows the topic.
        account_of: the account behind a connection.
    """

    def __init__(
        self,
        core: BrokerCore,
        *,
        functions: FilterFunctions,
        saved: Saved,
        queues_of: QueuesOf,
        account_of: AccountOf,
    ) -> None:
        consumers = core.live.current.consumers
        self.locks = QueueLocks(core.clock, hold_seconds=consumers.lock_hold_ms / 1000)
        self._notifier = ConsumerNotifier(
            core.clients, core.groups.get, is_enabled=consumers.notify_ids_changed
        )
        core.live.on_change(self._apply)
        self.processor = ClientProcessor(
            live=core.live,
            clients=core.clients,
            filters=core.filters,
            functions=functions,
            notifier=self._notifier,
            creation=core.creation,
            account_of=account_of,
        )
        self._locks = LockProcessor(self.locks)
        self._assignment = AssignmentAdmin(
            live=core.live,
            topics=core.topics,
            clients=core.clients,
            modes=core.modes,
            saved=saved,
            queues_of=queues_of,
        )
        self._connections = ConnectionAdmin(core.clients)
        self._forwarding = ForwardingAdmin(
            broker_name=core.broker_name, clients=core.clients, store=core.store
        )

    def register(self, ports: RequestPorts) -> None:
        ports.serve(
            self.processor, self._locks, self._assignment, self._connections, self._forwarding
        )
        ports.on_close(self.processor.closed)

    def _apply(self, config: BrokerConfig) -> None:
        self._notifier.is_enabled = config.consumers.notify_ids_changed
