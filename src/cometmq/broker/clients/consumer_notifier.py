"""Tells the clients of a consumer group that its members changed, so that they share the queues out anew."""

from __future__ import annotations

from collections.abc import Callable

from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command


class ConsumerNotifier:
    """Sends NOTIFY_CONSUMER_IDS_CHANGED, one-way, to every client of a group.

    Args:
        group_config: looks a group's configuration up; a group without one is notified.
    """

    def __init__(
        self,
        clients: ClientRegistry,
        group_config: Callable[[str], SubscriptionGroupConfig | None],
        *,
        is_enabled: bool = True,
    ) -> None:
        self._clients = clients
        self._group_config = group_config
        self.is_enabled = is_enabled

    def notify(self, group: str) -> None:
        """The client whose heartbeat made the change is told as well, before its heartbeat is answered."""
        config = self._group_config(group)
        if not self.is_enabled or (
            config is not None and not config.notify_consumer_ids_changed_enable
        ):
            return
        entry = self._clients.consumer_group(group)
        if entry is None:
            return
        for connection in list(entry.clients):
            if not connection.is_closed:
                connection.oneway(
                    Command(
                        code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ext={"consumerGroup": group}
                    )
                )
