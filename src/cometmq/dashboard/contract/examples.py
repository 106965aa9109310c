"""A request for each route, as it is in the OpenAPI file. A test runs all of them, in this order, on a small cluster.

The cluster has a topic ``Orders`` with messages of the keys ``order-17`` and up, and a group ``billing`` that consumed
some of them and gave one up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MESSAGE_ID: Final = "7F0000010000000000000000000000A1"
"""Stands for the unique id of a message, which is new in each cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


_BROKER: Final = {"broker": "standalone", "id": "0"}
_ORDERS: Final = {"topic": "Orders"}
_BILLING: Final = {"group": "billing"}
_MESSAGE: Final = {"names": {"id": MESSAGE_ID}, "query": _ORDERS}

EXAMPLES: Final[dict[str, Example]] = {
    "me": Example(),
    "health": Example(),
    "search": Example(query={"q": "ord"}),
    "overview": Example(),
    "history": Example(query={"series": "put_tps,group:billing:lag", "minutes": 60}),
    "cluster": Example(),
    "broker": Example(names=_BROKER),
    "broker_settings": Example(names=_BROKER),
    "change_broker_settings": Example(names=_BROKER, body={"values": {"fileReservedTime": "48"}}),
    "write_permission": Example(names={"broker": "standalone"}, body={"allowed": True}),
    "name_server_settings": Example(),
    "topics": Example(query={"kind": "normal", "sort": "-messages", "size": 20}),
    "create_topic": Example(body={"name": "Invoices", "read_queues": 4, "write_queues": 4}),
    "topic": Example(names=_ORDERS),
    "change_topic": Example(names={"topic": "Invoices"}, body={"perm": "rw", "write_queues": 4}),
    "send": Example(
        names={"topic": "Invoices"},
        body={"body": '{"order": 17}', "tags": "new", "keys": ["order-17"]},
    ),
    "groups": Example(query={"state": "lagging", "sort": "-lag"}),
    "create_group": Example(body={"name": "archive", "retries": 3}),
    "group": Example(names=_BILLING),
    "preview_reset": Example(names=_BILLING, body={"topic": "Orders", "to": "beginning"}),
    "reset": Example(
        names=_BILLING, body={"topic": "Orders", "to": "beginning", "confirm": "billing"}
    ),
    "messages": Example(query={"topic": "Orders", "key": "order-17"}),
    "export_messages": Example(query={"topic": "Orders", "count": 100}),
    "message": Example(**_MESSAGE),
    "body": Example(**_MESSAGE),
    "fate": Example(**_MESSAGE),
    "trace": Example(**_MESSAGE),
    "resend": Example(names={"id": MESSAGE_ID}, body={"topic": "Orders", "to_group": "billing"}),
    "dead_letter_groups": Example(),
    "dead_letters": Example(names=_BILLING),
    "resend_dead_letters": Example(names=_BILLING, body={"all": True, "confirm": "billing"}),
    "export_dead_letters": Example(names=_BILLING),
    "delete_dead_letters": Example(names=_BILLING, body={"confirm": "billing"}),
    "waiting": Example(),
    "transactions": Example(),
    "pipelines": Example(),
    "alerts": Example(),
    "put_rule": Example(
        body={"name": "billing is late", "kind": "lag", "threshold": 1000, "pattern": "billing"}
    ),
    "silence": Example(body={"rule": "billing is late", "subject": "billing", "minutes": 30}),
    "delete_rule": Example(names={"rule": "billing is late"}),
    "audit": Example(query={"action": "reset"}),
    "accounts": Example(),
    "delete_group": Example(names={"group": "archive"}, body={"confirm": "archive"}),
    "delete_topic": Example(names={"topic": "Invoices"}, body={"confirm": "Invoices"}),
}
"""Routes without one need a login, a client that is online, or a message that waits."""
