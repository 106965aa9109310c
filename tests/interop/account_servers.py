"""Our broker beside RocketMQ's, each with a name server of its own: the same accounts, topics, groups and messages.

``plain_servers`` has the accounts of RocketMQ 4 (ACL 1) beside 4.9.7, ``user_servers`` those of RocketMQ 5 (ACL 2)
beside 5.5.0.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.eventually import eventually

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.client import ClientConfig, Credentials, Message, ProducerConfig
from cometmq.client.aio import Producer
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign
from cometmq.remoting.client import RemotingClient

from . import patience
from .admin_calls import ask_broker, create_group, create_topic
from .servers import GET_ROUTEINFO_BY_TOPIC, ask
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, Broker, NameServer, commands_of

BROKER_NAME = "interop-broker"
CLUSTER_NAME = "interop-cluster"
ROUTE_SECONDS_MAX = 60.0


class Account(NamedTuple):
    """An empty name means that nothing is signed."""

    name: str
    secret: str
    token: str = ""

    @property
    def credentials(self) -> Credentials:
        return Credentials(access_key=self.name, secret_key=self.secret, security_token=self.token)


OPERATOR = Account("operator", "operator-secret")
TENANT = Account("tenant-one", "12345678")
VISITOR = Account("visitor-one", "visitor-secret")
NEIGHBOUR = Account("neighbour", "neighbour-secret")
BUILDER = Account("builder-one", "builder-secret")
NEWCOMER = Account("newcomer", "newcomer-secret")
TOPICS_ALONE = Account("topics-alone", "topics-secret")
GROUPS_ALONE = Account("groups-alone", "groups-secret")
RETIRED = Account("retired-one", "retired-secret")
TRAVELLER = Account("traveller", "traveller-secret")
STRANGER = Account("stranger", "stranger-secret")
NOBODY = Account("", "")

OPEN, WRITE_ONLY, READ_ONLY, CLOSED, UNLISTED = (
    "Open",
    "WriteOnly",
    "ReadOnly",
    "Closed",
    "Unlisted",
)
TOPICS = (OPEN, WRITE_ONLY, READ_ONLY, CLOSED, UNLISTED)
READERS, CONSUMERS, STRANGERS = "readers", "consumers", "strangers"
GROUPS = (READERS, CONSUMERS, STRANGERS)

PLAIN_ACL = f"""\
# Who may come without an account.
globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.{{1,2}}

accounts:
- accessKey: {TENANT.name}
  secretKey: {TENANT.secret}
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - {CLOSED}=DENY
  - {OPEN}=PUB|SUB
  - {WRITE_ONLY}=PUB
  - {READ_ONLY}=SUB
  groupPerms:
  # A group's retry topic goes with the group.
  - {STRANGERS}=DENY
  - {READERS}=SUB
  - {CONSUMERS}=SUB

- accessKey: {OPERATOR.name}
  secretKey: {OPERATOR.secret}
  whiteRemoteAddress: 192.168.1.*
  # May do everything.
  admin: true
"""

MORE_ACCOUNTS = f"""\
accounts:
- accessKey: {VISITOR.name}
  secretKey: {VISITOR.secret}
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
- accessKey: {TOPICS_ALONE.name}
  secretKey: {TOPICS_ALONE.secret}
  defaultTopicPerm: PUB|SUB
- accessKey: {GROUPS_ALONE.name}
  secretKey: {GROUPS_ALONE.secret}
  defaultGroupPerm: PUB|SUB
- accessKey: {NEIGHBOUR.name}
  secretKey: {NEIGHBOUR.secret}
  whiteRemoteAddress: 127.0.0.1
"""

ACLS: Mapping[Account, tuple[dict[str, Any], ...]] = {
    TENANT: (
        {"resource": f"Topic:{OPEN}", "actions": ["Pub", "Sub"]},
        {"resource": f"Topic:{WRITE_ONLY}", "actions": ["Pub"]},
        {"resource": f"Topic:{READ_ONLY}", "actions": ["Sub"]},
        {"resource": f"Topic:{CLOSED}", "actions": ["All"], "decision": "Deny"},
        {"resource": f"Group:{READERS}", "actions": ["Sub"]},
        {"resource": f"Group:{CONSUMERS}", "actions": ["Sub"]},
    ),
    VISITOR: (
        {"resource": "Topic:*", "actions": ["Pub", "Sub", "Get"]},
        {"resource": "Group:*", "actions": ["Sub", "Get"]},
        {"resource": f"Topic:{CLOSED}", "actions": ["Pub"], "decision": "Deny"},
    ),
    BUILDER: (
        {"resource": "Topic:Built*", "actions": ["Create", "Delete"]},
        {"resource": "Group:built*", "actions": ["Create", "Delete"]},
        {"resource": f"Cluster:{CLUSTER_NAME}", "actions": ["Get", "Update"]},
    ),
    TOPICS_ALONE: ({"resource": "Topic:*", "actions": ["All"]},),
    GROUPS_ALONE: ({"resource": "Group:*", "actions": ["All"]},),
    TRAVELLER: ({"resource": f"Topic:{OPEN}", "actions": ["All"], "sourceIps": ["10.0.0.0/8"]},),
}
"""What normal users of RocketMQ 5 may do; ``NEWCOMER`` and ``RETIRED`` have no acl, and the latter is disabled."""

USERS_SETTINGS: Mapping[str, object] = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": LOCAL_USERS,
    "authorizationMetadataProvider": LOCAL_ACLS,
    "initAuthenticationUser": json.dumps(
        {"username": OPERATOR.name, "password": OPERATOR.secret}, separators=(",", ":")
    ),
}


@dataclass(frozen=True)
class GuardedBroker:
    """A broker that asks for accounts; ``home`` has its account files."""

    make: str
    name_server: NameServer
    broker: Broker
    home: Path

    @property
    def address(self) -> str:
        return self.broker.address

    def remoting(self, account: Account) -> RemotingClient:
        """A connection whose requests are signed; it must be closed."""
        if not account.name:
            return RemotingClient()
        return RemotingClient(
            sign=partial(sign, access_key=account.name, secret_key=account.secret)
        )

    def client_config(self, account: Account) -> ClientConfig:
        return ClientConfig(name_servers=self.name_server.address, credentials=account.credentials)


Guarded = dict[str, GuardedBroker]
"""By make: ours and RocketMQ's."""


@contextlib.contextmanager
def plain_servers(
    directory: Path, makes: Sequence[str] = (OURS, ROCKETMQ_4), **settings: object
) -> Iterator[Guarded]:
    """Raises MissingComponent. ``settings`` are further ones of the brokers."""
    homes = {make: directory / f"home-{make}" for make in makes}
    for home in homes.values():
        (home / "conf" / "acl").mkdir(parents=True)
        (home / "conf" / "plain_acl.yml").write_text(PLAIN_ACL, encoding="utf-8")
        (home / "conf" / "acl" / "more.yml").write_text(MORE_ACCOUNTS, encoding="utf-8")
    with _running(directory, homes, {"aclEnable": "true", **settings}) as guarded:
        for one in guarded.values():
            asyncio.run(_prepare(one))
        yield guarded


@contextlib.contextmanager
def user_servers(
    directory: Path, makes: Sequence[str] = (OURS, ROCKETMQ_5), **settings: object
) -> Iterator[Guarded]:
    """Raises MissingComponent. ``settings`` are further ones of the brokers."""
    homes = {make: directory / f"home-{make}" for make in makes}
    with _running(directory, homes, {**USERS_SETTINGS, **settings}) as guarded:
        for one in guarded.values():
            asyncio.run(_create_users(one))
            asyncio.run(_prepare(one))
        yield guarded


@contextlib.contextmanager
def _running(
    directory: Path, homes: Mapping[str, Path], settings: Mapping[str, object]
) -> Iterator[Guarded]:
    with contextlib.ExitStack() as stack:
        guarded: Guarded = {}
        for make, home in homes.items():
            commands = commands_of(make, home)
            # Ours for both: it starts sooner, and this is about brokers.
            name_server = stack.enter_context(
                NameServer(commands_of(OURS, home), directory / f"namesrv-{make}").running()
            )
            broker = Broker(
                [name_server],
                directory / make,
                BROKER_NAME,
                mappedFileSizeCommitLog=16 * 1024 * 1024,
                rocketmqHome=home,
                **settings,
            )
            stack.callback(broker.kill)
            broker.start(commands)
            guarded[make] = GuardedBroker(make, name_server, broker, home)
        yield guarded


async def _create_users(one: GuardedBroker) -> None:
    remoting = one.remoting(OPERATOR)
    for account in (*ACLS, NEWCOMER, RETIRED):
        status = "disable" if account == RETIRED else "enable"
        body = {"username": account.name, "password": account.secret, "userStatus": status}
        header = {"username": account.name}
        request = Command(RequestCode.AUTH_CREATE_USER, header, json.dumps(body).encode())
        await ask_broker(remoting, one.address, request)
        if account in ACLS:
            entries = [{"decision": "Allow", **entry} for entry in ACLS[account]]
            subject = f"User:{account.name}"
            acl = {"subject": subject, "policies": [{"policyType": "Custom", "entries": entries}]}
            request = Command(
                RequestCode.AUTH_CREATE_ACL, {"subject": subject}, json.dumps(acl).encode()
            )
            await ask_broker(remoting, one.address, request)
    await remoting.close()


async def _prepare(one: GuardedBroker) -> None:
    remoting = one.remoting(OPERATOR)
    for group in GROUPS:
        await create_group(remoting, one.address, group)
    topics = (*TOPICS, *(f"%RETRY%{group}" for group in GROUPS))
    for topic in topics:
        await create_topic(remoting, one.address, topic, 1)
    await eventually(
        lambda: all(_has_route(one, topic) for topic in topics),
        "routes of all topics",
        ROUTE_SECONDS_MAX,
    )
    config = ProducerConfig(client=one.client_config(OPERATOR))
    async with Producer("preparers", config=config) as producer:
        for topic in TOPICS:
            await patience.send(producer, Message(topic=topic, body=b"prepared", keys=["prepared"]))
    position = {"consumerGroup": READERS, "topic": OPEN, "queueId": "0", "commitOffset": "0"}
    await ask_broker(remoting, one.address, Command(RequestCode.UPDATE_CONSUMER_OFFSET, position))
    await remoting.close()


def _has_route(one: GuardedBroker, topic: str) -> bool:
    code, body = ask(one.name_server.port, GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return code == 0 and one.address.encode() in body
