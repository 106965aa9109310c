"""Tells brokers who is here (34) and who left (35), and remembers their versions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.name_servers import Call
from cometmq.client.aio.instance.roles import RoleTable
from cometmq.client.core.route_table import RouteTable
from cometmq.model.ids import MASTER_ID
from cometmq.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.heartbeat import UnregisterClientHeader
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")

RETRY_SECONDS: Final = 3.0
"""Initial back-off after a failed heartbeat; it doubles each time, up to the usual period.

A broker that restarts has forgotten its clients; consumers get no queues from it until it hears from them again.
"""


class Heartbeats:
    def __init__(
        self,
        client_id: str,
        roles: RoleTable,
        routes: RouteTable,
        call: Call,
        *,
        timeout: float,
        is_unit_mode: bool = False,
        on_answer: Callable[[str], None] = lambda address: None,
    ) -> None:
        """Args: on_answer: called with the address of each broker that answered."""
        self._client_id = client_id
        self._roles = roles
        self._routes = routes
        self._call = call
        self._timeout = timeout
        self._is_unit_mode = is_unit_mode
        self._on_answer = on_answer
        self._versions: dict[str, int] = {}
        self._greeted: set[str] = set()
        self._under_way: dict[asyncio.Future[bool], str] = {}
        self._retry_seconds = RETRY_SECONDS

    async def beat_all(self) -> float | None:
        """Send a heartbeat to every broker. Returns the seconds until the next one if not all answered."""
        addresses = self.targets()
        self._forget(addresses)
        if not addresses:
            return None
        body = self._data().encode()
        beats = [self._begin(address, body) for address in addresses]
        # Cancelling this does not undo what was sent; ``unregister`` waits for the replies.
        answered = await asyncio.gather(*map(asyncio.shield, beats))
        if all(answered):
            self._retry_seconds = RETRY_SECONDS
            return None
        delay, self._retry_seconds = self._retry_seconds, self._retry_seconds * 2
        return delay

    def greet(self, address: str) -> None:
        """A connection was opened. If it is to one of our brokers that does not know us yet, send a heartbeat at once.

        A restarted broker asks a producer about its transactions as soon as it has heard from it, not before.
        """
        is_known = address in self._greeted or address in self._under_way.values()
        if not is_known and address in self.targets():
            self._begin(address, self._data().encode())

    def targets(self) -> list[str]:
        """The brokers for heartbeats: slaves only matter to consumers; none if there is no role to announce."""
        if not self._roles.producers and not self._roles.consumers:
            return []
        return [
            address
            for by_id in self._routes.brokers().values()
            for broker_id, address in sorted(by_id.items())
            if broker_id == MASTER_ID or self._roles.consumers
        ]

    def has_strangers(self) -> bool:
        """Whether some broker has not answered a heartbeat yet."""
        return any(address not in self._greeted for address in self.targets())

    def lost(self, address: str) -> None:
        """A connection was lost, and with it the broker's knowledge of us."""
        self._greeted.discard(address)

    def version(self, broker_name: str) -> int:
        """The version in a broker's last reply; 0 if there was none."""
        by_id = self._routes.addresses(broker_name)
        versions = [self._versions.get(by_id[broker_id], 0) for broker_id in sorted(by_id)]
        return next((version for version in versions if version), 0)

    async def unregister(self, *, producer_group: str = "", consumer_group: str = "") -> None:
        """Tell the brokers that know us that a group has left; one that does not answer will find out on its own."""
        # RocketMQ's broker handles both in parallel: a heartbeat handled last would bring us back for 120 s.
        if self._under_way:
            await asyncio.wait(self._under_way)
        header = UnregisterClientHeader(
            client_id=self._client_id,
            producer_group=producer_group or None,
            consumer_group=consumer_group or None,
        )
        await asyncio.gather(*(self._unregister(address, header) for address in self._greeted))

    def _data(self) -> HeartbeatData:
        return HeartbeatData(
            client_id=self._client_id,
            producer_data_set=[ProducerData(group_name=group) for group in self._roles.producers],
            consumer_data_set=[
                ConsumerData(
                    group_name=role.group,
                    consume_type=role.consume_type.value,
                    message_model=role.message_model.value,
                    consume_from_where=role.consume_from.value,
                    subscription_data_set=role.subscriptions(),
                    unit_mode=self._is_unit_mode,
                    max_reconsume_times=role.retries_max,
                )
                for role in self._roles.consumers.values()
            ],
        )

    def _begin(self, address: str, body: bytes) -> asyncio.Future[bool]:
        beat = asyncio.ensure_future(self._beat(address, body))
        self._under_way[beat] = address
        beat.add_done_callback(self._under_way.pop)
        return beat

    async def _beat(self, address: str, body: bytes) -> bool:
        request = Command(RequestCode.HEART_BEAT, body=body)
        try:
            reply = await self._call(address, request, self._timeout)
            if reply.code != ResponseCode.SUCCESS:
                raise error_for(reply, address)
        except CometError as error:
            self._greeted.discard(address)
            logger.warning("heartbeat failed broker=%s reason=%s", address, error)
            return False
        self._on_answer(address)
        self._versions[address] = reply.version
        self._greeted.add(address)
        return True

    async def _unregister(self, address: str, header: UnregisterClientHeader) -> None:
        request = Command(RequestCode.UNREGISTER_CLIENT, encode_fields(header))
        try:
            reply = await self._call(address, request, self._timeout)
            if reply.code != ResponseCode.SUCCESS:
                raise error_for(reply, address)
        except CometError as error:
            logger.info("unregistering failed broker=%s reason=%s", address, error)

    def _forget(self, addresses: list[str]) -> None:
        self._greeted.intersection_update(addresses)
        for address in set(self._versions) - set(addresses):
            del self._versions[address]
