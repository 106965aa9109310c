"""The state of a producer between start and close, and its role in its instance."""

from __future__ import annotations

import ipaddress
import os
import random
from collections.abc import Awaitable, Callable, Collection, Sequence

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.send.publish_routes import PublishRoutes
from cometmq.client.aio.send.request_reply import PendingRequests
from cometmq.client.aio.send.sender import Sender
from cometmq.client.aio.send.unique_key_month import month_of
from cometmq.client.aio.trace.send_hooks import SendHook
from cometmq.client.core.send.prepare import Envelope
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.unique_key import UniqueKeys
from cometmq.protocol.command import Command

CheckTransaction = Callable[[str, Command], Awaitable[None]]


class RunningProducer:
    """Args:
    check_transaction: handles request 39 and the address it came from.
    """

    __slots__ = (
        "asked_topics",
        "envelope",
        "instance",
        "keys",
        "monotonic",
        "requests",
        "role",
        "routes",
        "sender",
        "wall_ms",
    )

    def __init__(
        self,
        group: str,
        instance: ClientInstance,
        config: ProducerConfig,
        hooks: Sequence[SendHook],
        check_transaction: CheckTransaction,
    ) -> None:
        self.instance = instance
        self.monotonic = instance.clock.monotonic
        self.wall_ms = instance.clock.wall_ms
        self.routes = PublishRoutes(
            instance,
            create_topic_key=config.create_topic_key,
            create_queue_count=config.default_topic_queue_count,
        )
        wire_group = instance.wrap_group(group)
        self.envelope = Envelope(
            group=wire_group,
            default_topic=config.create_topic_key,
            default_topic_queue_nums=config.default_topic_queue_count,
            unit_mode=config.client.is_unit_mode,
        )
        self.sender = Sender(group, instance, self.routes, config, hooks)
        self.requests = PendingRequests(config.requests_max)
        self.asked_topics: set[str] = set()
        """Topics whose brokers were told about this client before a request."""
        self.keys = UniqueKeys(
            address=_own_address(instance.client_id),
            process_id=os.getpid(),
            # Distinguishes the producers of one process, like Java's class loader hash.
            instance_hash=random.getrandbits(32),
            month_of=month_of,
        )
        self.role = Role(wire_group, self, check_transaction)


class Role:
    """The producer as its instance sees it."""

    def __init__(
        self, wire_group: str, running: RunningProducer, check_transaction: CheckTransaction
    ) -> None:
        self.group = wire_group
        self._running = running
        self._check_transaction = check_transaction

    def topics(self) -> Collection[str]:
        return self._running.routes.wire_topics()

    async def check_transaction(self, address: str, request: Command) -> None:
        await self._check_transaction(address, request)

    def reply_arrived(self, request: Command) -> None:
        self._running.requests.arrived(request)


def _own_address(client_id: str) -> bytes:
    """The address that a client id begins with; the loopback address if it is a name."""
    try:
        return ipaddress.ip_address(client_id.partition("@")[0].partition("%")[0]).packed
    except ValueError:
        return bytes((127, 0, 0, 1))
