"""Brokers with the users and acls of RocketMQ 5: our own clients, each permission, replicas, secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.raw_client import RawClient
from tests.integration.servers import running_broker
from tests.integration.signing_client import SigningClient

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.broker.server import Broker
from cometmq.client import (
    ClientConfig,
    Credentials,
    LitePullConfig,
    Message,
    ProducerConfig,
)
from cometmq.client.aio import LitePullConsumer, Producer
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import BrokerReplyError
from cometmq.testing import cluster

ROOT = "root-password-1"
INNER = "inner-password-1"
SETTINGS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": LOCAL_USERS,
    "authorizationMetadataProvider": LOCAL_ACLS,
    "initAuthenticationUser": json.dumps({"username": "root", "password": ROOT}),
    "innerClientAuthenticationCredentials": json.dumps({"accessKey": "inner", "secretKey": INNER}),
}


@asynccontextmanager
async def broker_at(directory: Path, **settings: str) -> AsyncIterator[Broker]:
    async with running_broker(directory, **{**SETTINGS, **settings}) as broker:
        yield broker


def entry(resource: str, *actions: str, decision: str = "Allow", **more: Any) -> dict[str, Any]:
    return {"resource": resource, "actions": actions, "decision": decision, **more}


async def make_user(root: SigningClient, name: str, *entries: dict[str, Any]) -> None:
    reply = await root.ask(3001, {"username": name}, {"password": f"{name}-pw"})
    assert reply.code == 0, reply.remark
    if entries:
        await allow(root, name, *entries)


async def allow(root: SigningClient, name: str, *entries: dict[str, Any]) -> None:
    body = {"subject": f"User:{name}", "policies": [{"entries": entries}]}
    reply = await root.ask(3006, {"subject": f"User:{name}"}, body)
    assert reply.code == 0, reply.remark


async def test_right_wrong_and_missing_accounts(tmp_path: Path) -> None:
    async with broker_at(tmp_path) as broker, SigningClient(broker.address, "root", ROOT) as root:
        await make_user(root, "bob", entry("Topic:T*", "Pub"))
        async with RawClient(broker.address) as stranger:
            reply = await stranger.send("T", b"x")
            assert (reply.code, reply.remark) == (16, "username cannot be null.")
        for name, secret, text in (
            ("bob", "wrong", "check signature failed."),
            ("eve", "x", "User:eve is not found."),
        ):
            async with SigningClient(broker.address, name, secret) as client:
                reply = await client.send("T", b"x")
                assert (reply.code, reply.remark) == (16, text)
        async with SigningClient(broker.address, "bob", "bob-pw") as bob:
            assert (await bob.send("T1", b"x")).code == 0
            assert (await bob.send("U", b"x")).remark == (
                "User:bob has no permission to access Topic:U from 127.0.0.1, no matched policies."
            )
            await allow(root, "bob", entry("Topic:T1", "Pub", decision="Deny"))
            assert (await bob.send("T1", b"x")).remark == (
                "User:bob has no permission to access Topic:T1 from 127.0.0.1, the decision is deny."
            )
            await root.ask(3002, {"username": "bob"}, {"userStatus": "disable"})
            assert (await bob.send("T2", b"x")).remark == "User:bob is disabled."


async def test_each_permission_is_denied_once(tmp_path: Path) -> None:
    ext = {"topic": "T", "group": "g", "consumerGroup": "g", "groupName": "g", "b": "T"}
    ext |= {"queueId": "0", "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "4", "offset": "0"}
    denied = {
        310: "Topic:T",
        320: "Topic:T",
        325: "Topic:T",
        11: "Topic:T",
        361: "Topic:T",
        29001: "Topic:T",
        200050: "Topic:T",
        200051: "Topic:T",
        14: "Topic:T",
        15: "Topic:T",
        30: "Topic:T",
        38: "Group:g",
        36: "Group:g",
        17: "Topic:T",
        215: "Topic:T",
        207: "Group:g",
        202: "Topic:T",
        203: "Group:g",
        222: "Topic:T",
        29002: "Group:",
        **dict.fromkeys(
            (21, 25, 26, 28, 43, 45, 201, 305, 315, 329, 402), "Cluster:DefaultCluster"
        ),
        **dict.fromkeys((3001, 3002, 3003, 3004, 3005), "Cluster:DefaultCluster"),
        **dict.fromkeys((3006, 3007, 3008, 3009, 3010), "Cluster:DefaultCluster"),
    }
    async with broker_at(tmp_path) as broker, SigningClient(broker.address, "root", ROOT) as root:
        await make_user(root, "nobody")
        async with SigningClient(broker.address, "nobody", "nobody-pw") as nobody:
            for code, resource in denied.items():
                reply = await nobody.ask(code, ext)
                assert (reply.code, reply.remark) == (
                    16,
                    f"User:nobody has no permission to access {resource} from 127.0.0.1, no matched policies.",
                ), code
            assert (await nobody.ask(29007)).remark == "User:nobody is not a super user."
            beat = {
                "clientID": "c",
                "producerDataSet": [],
                "consumerDataSet": [{"groupName": "g"}],
            }
            assert "Group:g" in str((await nobody.ask(34, None, beat)).remark)
            beat["consumerDataSet"] = []
            assert (await nobody.ask(34, None, beat)).code == 0


async def test_requests_about_users(tmp_path: Path) -> None:
    async with broker_at(tmp_path) as broker, SigningClient(broker.address, "root", ROOT) as root:
        await make_user(root, "bob", entry("Cluster:*", "Get"), entry("Topic:T", "Pub"))
        again = await root.ask(3001, {"username": "bob"}, {"password": "x"})
        assert (again.code, again.remark) == (16, "The user is existed")
        shown = json.loads(bytes((await root.ask(3004, {"username": "bob"})).body))
        assert shown == {
            "username": "bob",
            "password": "bob-pw",
            "userType": "Normal",
            "userStatus": "enable",
        }
        unknown = await root.ask(3004, {"username": "eve"})
        assert (unknown.code, bytes(unknown.body)) == (0, b"")
        listed = json.loads(bytes((await root.ask(3005)).body))
        assert [one["username"] for one in listed] == ["bob", "inner", "root"]
        async with SigningClient(broker.address, "bob", "bob-pw") as bob:
            seen = bytes((await bob.ask(3005)).body)
            assert b"inner" in seen
            assert b"password" not in seen
        acl = bytes((await root.ask(3009, {"subject": "User:bob"})).body)
        assert json.loads(acl)["policies"][0]["entries"][1] == entry_shown("Topic:T", "Pub")
        found = json.loads(bytes((await root.ask(3010, {"resourceFilter": "Topic"})).body))
        assert [len(one["policies"][0]["entries"]) for one in found] == [1]
        gone = await root.ask(3008, {"subject": "User:bob", "resource": "Topic:T"})
        assert (gone.code, gone.remark) == (0, "not set any response code")
        assert (await root.ask(3003, {"username": "bob"})).code == 0
        assert (await root.ask(3009, {"subject": "User:bob"})).remark == "The subject is not exist."


def entry_shown(resource: str, *actions: str) -> dict[str, Any]:
    return {"resource": resource, "actions": list(actions), "decision": "Allow"}


async def test_accounts_survive_a_restart_and_secrets_stay_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with broker_at(tmp_path) as broker, SigningClient(broker.address, "root", ROOT) as root:
        await make_user(root, "bob", entry("Topic:T", "Pub"))
        settings = bytes((await root.ask(26)).body).decode()
        assert "authenticationEnabled=true" in settings
    async with broker_at(tmp_path, accountSecretsVisible="false") as broker:
        async with SigningClient(broker.address, "bob", "bob-pw") as bob:
            assert (await bob.send("T", b"x")).code == 0
        async with SigningClient(broker.address, "root", ROOT) as root:
            assert b"bob-pw" not in bytes((await root.ask(3005)).body)
    kept = (tmp_path / "config" / "accounts.json").read_text()
    audit = (tmp_path / "audit.log").read_text()
    for text in (settings, kept, audit, caplog.text, repr(broker.live.current)):
        for secret in (ROOT, INNER, "bob-pw"):
            assert secret not in text
    told = [json.loads(line)["request"] for line in audit.splitlines()]
    assert told == ["AUTH_CREATE_USER", "AUTH_CREATE_ACL", "AUTH_LIST_USER"]


async def test_our_own_clients_with_accounts() -> None:
    async with cluster(settings=SETTINGS) as servers:
        async with SigningClient(servers.broker_address, "root", ROOT) as root:
            await make_user(root, "maker", entry("Topic:Orders", "Pub"))
            await make_user(
                root, "taker", entry("Topic:Orders", "Sub"), entry("Group:billing", "Sub")
            )
        maker = client(servers.name_servers, "maker")
        async with Producer("shop", config=ProducerConfig(client=maker)) as producer:
            sent = await producer.send(Message(topic="Orders", body=b"one"))
            assert sent.status == "SEND_OK"
            with pytest.raises(BrokerReplyError, match="no matched policies"):
                await producer.send(Message(topic="Orders2", body=b"two"))
        config = LitePullConfig(
            client=client(servers.name_servers, "taker"),
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        )
        async with LitePullConsumer("billing", config=config) as consumer:
            consumer.subscribe("Orders")
            [message] = await consumer.poll(timeout=10)
            assert message.body == b"one"


def client(name_servers: str, name: str) -> ClientConfig:
    return ClientConfig(
        name_servers=name_servers,
        credentials=Credentials(access_key=name, secret_key=f"{name}-pw"),
    )


def knows_bob(broker: Broker) -> bool:
    return knows(broker, "bob")


def knows(broker: Broker, name: str) -> bool:
    """Whether it has the user, and what the user may do."""
    assert broker.access.accounts is not None
    return name in broker.access.accounts.accounts.acls


async def test_replicas_get_the_accounts_of_their_master() -> None:
    async with cluster(slaves=1, settings=SETTINGS) as servers:
        [master], [slave] = servers.masters, servers.slaves
        async with SigningClient(master.address, "root", ROOT) as root:
            await make_user(root, "bob", entry("Topic:T", "Pub"))
            assert (await root.send("Any", b"x")).code == 0

        await eventually(lambda: knows_bob(slave), "the accounts at the slave", 20)
        await eventually(lambda: "Any" in slave.core.topics.names(), "the topics at the slave", 20)
        await servers.promote(slave)
        async with SigningClient(slave.address, "bob", "bob-pw") as bob:
            assert (await bob.send("T", b"x")).code == 0
            assert (await bob.send("U", b"x")).code == 16


async def test_accounts_of_rocketmq_4_are_migrated(tmp_path: Path) -> None:
    conf = tmp_path / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "plain_acl.yml").write_text(
        "accounts: [{accessKey: old-user, secretKey: old-secret, topicPerms: [T=PUB]}]"
    )
    settings = {"migrateAuthFromV1Enabled": "true", "rocketmqHome": str(tmp_path / "home")}
    async with (
        broker_at(tmp_path / "store", **settings) as broker,
        SigningClient(broker.address, "old-user", "old-secret") as old,
    ):
        assert (await old.send("T", b"x")).code == 0
        assert "the decision is deny" in str((await old.send("U", b"x")).remark)


async def test_users_can_be_made_before_they_are_checked(tmp_path: Path) -> None:
    settings = {"authenticationEnabled": "false", "authorizationEnabled": "false"}
    async with (
        broker_at(tmp_path, **settings) as broker,
        RawClient(broker.address) as anybody,
    ):
        made = await anybody.ask(
            3001, {"username": "first"}, {"password": "pw", "userType": "Super"}
        )
        assert made.code == 0
        assert (await anybody.send("T", b"x")).code == 0
    async with broker_at(tmp_path) as broker, SigningClient(broker.address, "first", "pw") as first:
        assert (await first.ask(26)).code == 0


async def test_rocketmqs_way(tmp_path: Path) -> None:
    async with (
        broker_at(tmp_path, accessChecks="rocketmq") as broker,
        SigningClient(broker.address, "root", ROOT) as root,
    ):
        await make_user(root, "nobody")
        async with SigningClient(broker.address, "nobody", "nobody-pw") as nobody:
            assert (await nobody.ask(26)).code == 0
            assert (await nobody.ask(28)).code == 0


async def test_a_controlled_group_with_accounts() -> None:
    async with cluster(slaves=1, controller=True, settings=SETTINGS) as servers:
        [master], [slave] = servers.masters, servers.slaves
        async with SigningClient(master.address, "root", ROOT) as root:
            await make_user(root, "bob", entry("Topic:T", "Pub"))
            assert (await root.send("T", b"before")).code == 0
        await eventually(lambda: knows_bob(slave), "the accounts at the slave", 20)
        await servers.promote(slave)
        # The broker that was the master passes on what clients still send to it.
        async with SigningClient(master.address, "bob", "bob-pw") as bob:
            assert (await bob.send("T", b"passed on")).code == 0
            assert (await bob.send("U", b"x")).code == 16


async def test_what_a_broker_passes_on_has_the_rights_of_who_sent_it() -> None:
    """The broker signs as a super user. What only the master can check must not be checked for that one."""
    async with cluster(slaves=1, controller=True, settings=SETTINGS) as servers:
        [master], [slave] = servers.masters, servers.slaves
        async with SigningClient(master.address, "root", ROOT) as root:
            await make_user(root, "thief", entry("Group:mine", "Sub"), entry("Topic:Own", "Pub"))
            await make_user(root, "owner", entry("Group:mine", "Sub"), entry("Topic:Secret", "Sub"))
            stored = await root.send("Secret", b"not for everybody")
            half = await root.send("Secret", b"half", {"TRAN_MSG": "true", "PGROUP": "p"})
        await eventually(lambda: knows(slave, "owner"), "the accounts at the slave", 20)
        back = {"offset": offset_of(stored), "group": "mine", "delayLevel": "0"}
        end = {
            "producerGroup": "p",
            "tranStateTableOffset": (half.ext or {})["queueOffset"],
            "commitLogOffset": offset_of(half),
            "commitOrRollback": "8",
        }
        async with SigningClient(slave.address, "thief", "thief-pw") as thief:
            for code, fields in ((36, back), (37, end)):
                reply = await thief.ask(code, fields)
                assert (reply.code, reply.remark) == (
                    16,
                    "User:thief has no permission to access Topic:Secret from 127.0.0.1, no matched policies.",
                )
        async with SigningClient(slave.address, "owner", "owner-pw") as owner:
            reply = await owner.ask(36, back)
            assert reply.code == 0, reply.remark


def offset_of(sent: Command) -> str:
    """Where a message lies in the log, of the id that its sender was given."""
    return str(int((sent.ext or {})["msgId"][-16:], 16))
