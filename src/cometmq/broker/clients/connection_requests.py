"""Who is connected: requests 203, 204 and 328."""

from __future__ import annotations

from collections.abc import Iterable

from cometmq.broker.clients.client_registry import Client, ClientRegistry
from cometmq.broker.clients.subscription_mismatch import Mismatch
from cometmq.protocol.bodies.connection import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTable,
    SubscriptionCamp,
    SubscriptionMismatch,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import (
    GetConsumerConnectionHeader,
    GetProducerConnectionHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class ConnectionAdmin:
    def __init__(self, clients: ClientRegistry) -> None:
        self._clients = clients

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_CONSUMER_CONNECTION_LIST, self.consumers)
        dispatcher.add(RequestCode.GET_PRODUCER_CONNECTION_LIST, self.producers)
        dispatcher.add(RequestCode.GET_ALL_PRODUCER_INFO, self.all_producers)

    def consumers(self, connection: Connection, command: Command) -> Command:
        name = decode_fields(GetConsumerConnectionHeader, command.ext).consumer_group
        group = self._clients.consumer_group(name)
        if group is None:
            raise Refused(
                ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online"
            )
        body = ConsumerConnection(
            connection_set=_connections(group.clients.values()),
            subscription_table=group.subscriptions,
            consume_type=group.consume_type,
            message_model=group.message_model,
            consume_from_where=group.consume_from_where,
            subscription_mismatch=[_mismatch(each) for each in group.mismatches.values()] or None,
        )
        return command.reply(body=body.encode())

    def producers(self, connection: Connection, command: Command) -> Command:
        name = decode_fields(GetProducerConnectionHeader, command.ext).producer_group
        clients = self._clients.producers.get(name)
        if clients is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
        body = ProducerConnection(connection_set=_connections(clients.values()))
        return command.reply(body=body.encode())

    def all_producers(self, connection: Connection, command: Command) -> Command:
        data = {
            group: [_info(client) for client in clients.values()]
            for group, clients in self._clients.producers.items()
        }
        return command.reply(body=ProducerTable(data=data).encode())


def _connections(clients: Iterable[Client]) -> list[ClientConnection]:
    return [
        ClientConnection(
            client_id=client.client_id,
            client_addr=client.connection.peer,
            language=client.language,
            version=client.version,
        )
        for client in clients
    ]


def _mismatch(found: Mismatch) -> SubscriptionMismatch:
    return SubscriptionMismatch(
        topic=found.topic,
        camps=[
            SubscriptionCamp(
                client_ids=list(camp.client_ids),
                expression_type=camp.expression_type,
                sub_string=camp.expression,
            )
            for camp in found.camps
        ],
    )


def _info(client: Client) -> ProducerInfo:
    return ProducerInfo(
        client_id=client.client_id,
        # Java prints a socket address with a slash in front.
        remote_ip=f"/{client.connection.peer}",
        language=client.language,
        version=client.version,
        last_update_timestamp=client.seen_ms,
    )
