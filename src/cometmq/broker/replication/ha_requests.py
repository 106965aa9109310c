"""Requests about replication: its state (GET_BROKER_HA_STATUS), and where the master is (EXCHANGE_BROKER_HA_INFO)."""

from __future__ import annotations

from cometmq.broker.core import BrokerCore
from cometmq.broker.registration import Registration
from cometmq.broker.replication.ha_port import HaPort
from cometmq.broker.replication.slave_link import SlaveLink
from cometmq.protocol.bodies.ha import HaClient, HaConnection, HaStatus
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.broker import ExchangeHaInfoHeader, ExchangeHaInfoReply
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class HaRequests:
    def __init__(
        self, core: BrokerCore, port: HaPort, link: SlaveLink, registration: Registration
    ) -> None:
        self._core = core
        self._port = port
        self._link = link
        self._registration = registration
        self._end_at_start = core.store.max_physical

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_BROKER_HA_STATUS, self.status)
        dispatcher.add(RequestCode.EXCHANGE_BROKER_HA_INFO, self.exchange)

    def status(self, connection: Connection, command: Command) -> Command:
        core = self._core
        is_master = not core.live.current.identity.is_slave
        end = core.store.max_physical
        body = HaStatus(
            master=is_master,
            master_commit_log_max_offset=end if is_master else 0,
            in_sync_slave_nums=core.replicas.following(end) if is_master else 0,
            ha_connection_info=self._slaves(end) if is_master else [],
            ha_client_runtime_info=HaClient() if is_master else self._own(end),
        )
        return command.reply(body=body.encode())

    def exchange(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(ExchangeHaInfoHeader, command.ext)
        if self._core.live.current.identity.is_slave:
            if header.master_ha_address:
                # Whoever sends this says to be the master. The name servers know better.
                self._registration.renew()
            return command.reply(ext=encode_fields(ExchangeHaInfoReply()))
        reply = ExchangeHaInfoReply(
            master_address=self._core.address,
            master_ha_address=self._registration.ha_address,
            master_flush_offset=self._end_at_start,
        )
        return command.reply(ext=encode_fields(reply))

    def _slaves(self, end: int) -> list[HaConnection]:
        behind_max = self._core.replicas.behind_max
        return [
            HaConnection(
                addr=link.peer,
                slave_ack_offset=link.confirmed,
                diff=end - link.confirmed,
                in_sync=end - link.confirmed <= behind_max,
                transferred_byte_in_second=link.bytes_per_second,
                transfer_from_where=link.feed.next_offset or 0,
            )
            for link in self._port.links
        ]

    def _own(self, end: int) -> HaClient:
        link = self._link
        return HaClient(
            master_addr=link.master,
            transferred_byte_in_second=link.bytes_per_second,
            max_offset=end,
            last_read_timestamp=link.read_ms,
            last_write_timestamp=link.wrote_ms,
            activated=link.is_following,
        )
