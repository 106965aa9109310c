"""A broker with the accounts of RocketMQ 4: right, wrong and missing accounts, each permission, and changes at work."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.raw_client import RawClient
from tests.integration.servers import broker_config, running_broker
from tests.integration.signing_client import SigningClient

from cometmq.base.errors import ConfigError
from cometmq.broker.access import plain_keeper
from cometmq.broker.server import Broker
from cometmq.protocol.command import Command
from cometmq.testing import cluster

ACL = """
accounts:
- accessKey: normal-user
  secretKey: normal-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms: [Both=PUB|SUB, Out=PUB, In=SUB, Closed=DENY]
  groupPerms: [closed-group=DENY]
- accessKey: admin-user
  secretKey: admin-secret
  admin: true
"""
PREFIX = "org.apache.rocketmq.acl.common.AclException: "


@pytest.fixture
def home(tmp_path: Path) -> Path:
    conf = tmp_path / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "plain_acl.yml").write_text(ACL)
    return tmp_path / "home"


@asynccontextmanager
async def broker_at(home: Path) -> AsyncIterator[Broker]:
    settings = {"aclEnable": "true", "rocketmqHome": str(home)}
    async with running_broker(home.parent / "store", **settings) as broker:
        yield broker


async def test_accounts_and_permissions(home: Path) -> None:
    async with broker_at(home) as broker, RawClient(broker.address) as stranger:
        reply = await stranger.send("Both", b"x")
        assert (reply.code, reply.remark) == (1, f"{PREFIX}No accessKey is configured")
        async with SigningClient(broker.address, "normal-user", "wrong") as impostor:
            reply = await impostor.send("Both", b"x")
            assert reply.remark == f"{PREFIX}Check signature failed for accessKey=normal-user"
        async with SigningClient(broker.address, "nobody", "nothing") as nobody:
            assert (await nobody.send("Both", b"x")).remark == f"{PREFIX}No acl config for nobody"
        async with SigningClient(broker.address, "admin-user", "admin-secret") as admin:
            for topic in ("In", "Closed", "Else"):
                sent = await admin.send(topic, b"secret")
                assert sent.code == 0
        async with SigningClient(broker.address, "normal-user", "normal-secret") as user:
            for topic in ("Both", "Out"):
                assert (await user.send(topic, b"x")).code == 0
            for topic in ("In", "Closed", "Else"):
                for code in (310, 320):
                    reply = await user.send(topic, b"x", code=code)
                    assert reply.remark == f"{PREFIX}No default permission for topic:{topic}"
            assert await user.read("In") != []
            assert await user.read("Closed") == []
            for code, ext in (
                (17, {"topic": "Both"}),
                (215, {"topic": "Both"}),
                (25, {}),
                (26, {}),
                (50, {"accessKey": "x"}),
                (54, {}),
            ):
                reply = await user.ask(code, ext)
                assert reply.remark == (
                    f"{PREFIX}Need admin permission for request code={code}, but accessKey=normal-user is not"
                )
            closed = await user.ask(38, {"consumerGroup": "closed-group"})
            assert closed.remark == f"{PREFIX}No default permission for group:closed-group"
            # By its place, any message could be read.
            place = sent_place(sent)
            assert (await user.ask(33, {"offset": place})).code == 1
            back = {"offset": place, "group": "mine", "delayLevel": "0"}
            assert "topic:Else" in str((await user.ask(36, back)).remark)


def sent_place(reply: Command) -> str:
    """The physical offset in a message id."""
    assert reply.ext is not None
    return str(int(reply.ext["msgId"][-16:], 16))


async def test_requests_about_accounts(home: Path) -> None:
    async with (
        broker_at(home) as broker,
        SigningClient(broker.address, "admin-user", "admin-secret") as admin,
    ):
        new = {
            "accessKey": "newcomer",
            "secretKey": "its-secret",
            "topicPerms": "Fresh=PUB",
            "admin": "false",
        }
        bad = await admin.ask(50, {**new, "topicPerms": "Fresh=FLY"})
        assert (bad.code, str(bad.remark)[:32]) == (209, "Parse resource permission error ")
        assert (await admin.ask(50, new)).code == 0
        async with SigningClient(broker.address, "newcomer", "its-secret") as newcomer:
            assert (await newcomer.send("Fresh", b"x")).code == 0
            assert (await newcomer.send("Both", b"x")).code == 1
            gone = await admin.ask(51, {"accessKey": "newcomer"})
            assert gone.code == 0
            assert "No acl config" in str((await newcomer.send("Fresh", b"x")).remark)
        unknown = await admin.ask(51, {"accessKey": "newcomer"})
        assert (unknown.code, unknown.remark) == (
            210,
            "The accesskey[newcomer] corresponding to accessConfig has been deleted failed.",
        )
        info = await admin.ask(52)
        assert info.ext is not None
        assert json.loads(info.ext["version"])["counter"] == 2
        assert info.ext["brokerName"] == "b"
        assert list(json.loads(info.ext["allAclFileVersion"])) == [
            str(home / "conf" / "plain_acl.yml")
        ]
        assert (await admin.ask(53, {"globalWhiteAddrs": "127.0.0.1"})).code == 0
        async with RawClient(broker.address) as stranger:
            assert (await stranger.send("Closed", b"x")).code == 0
        refused = await admin.ask(53, {"globalWhiteAddrs": "*", "aclFileFullPath": "/etc/passwd"})
        assert refused.code == 211
        assert refused.remark == (
            "The globalWhiteAddresses[*] has been updated failed. "
            "/etc/passwd is no account file of this broker"
        )
        # From there nobody has to prove anything, so nobody is shown a secret.
        assert b"admin-secret" not in bytes((await admin.ask(54)).body)
        assert (await admin.ask(53, {"globalWhiteAddrs": "10.9.9.9"})).code == 0
        everything = json.loads(bytes((await admin.ask(54)).body))
        assert everything["globalWhiteAddrs"] == ["10.9.9.9"]
        shown = {one["accessKey"]: one for one in everything["plainAccessConfigs"]}
        assert shown["admin-user"]["secretKey"] == "admin-secret"


async def test_files_are_read_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plain_keeper, "RELOAD_SECONDS", 0.01)
    path = home / "conf" / "plain_acl.yml"
    async with (
        broker_at(home) as broker,
        SigningClient(broker.address, "normal-user", "normal-secret") as user,
    ):
        assert (await user.send("Both", b"x")).code == 0
        path.write_text("accounts: nonsense")
        await eventually(lambda: "the old ones stay" in caplog.text, "a complaint", 10)
        assert (await user.send("Both", b"x")).code == 0
        path.write_text(ACL.replace("Both=PUB|SUB", "Both=SUB"))

        async def is_refused() -> bool:
            return (await user.send("Both", b"x")).code == 1

        await eventually(is_refused, "the new permissions", 10)
        assert "normal-secret" not in caplog.text


async def test_accounts_that_cannot_be_read_refuse_the_start(home: Path) -> None:
    (home / "conf" / "plain_acl.yml").write_text("accounts: nonsense")
    settings = {"aclEnable": "true", "rocketmqHome": str(home)}
    broker = Broker(broker_config(home.parent / "store", **settings))
    with pytest.raises(ConfigError, match=r"plain_acl\.yml"):
        await broker.start()


async def test_changes_are_in_the_audit_log(home: Path) -> None:
    async with broker_at(home) as broker:
        async with SigningClient(broker.address, "admin-user", "admin-secret") as admin:
            topic = {"topic": "New", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6"}
            assert (await admin.ask(17, topic)).code == 0
            await admin.ask(50, {"accessKey": "newcomer", "secretKey": "its-secret"})
        async with SigningClient(broker.address, "normal-user", "normal-secret") as user:
            await user.ask(215, {"topic": "New"})
            await user.send("Both", b"x")
    lines = (home.parent / "store" / "audit.log").read_text()
    assert "its-secret" not in lines
    told = [json.loads(line) for line in lines.splitlines()]
    assert [(one["account"], one["request"], one["result"]) for one in told] == [
        ("admin-user", "UPDATE_AND_CREATE_TOPIC", 0),
        ("admin-user", "UPDATE_AND_CREATE_ACL_CONFIG", 0),
        ("normal-user", "DELETE_TOPIC_IN_BROKER", 1),
    ]
    assert told[0]["target"]["topic"] == "New"


async def test_slaves_sign_with_an_account_of_the_file(home: Path) -> None:
    settings = {
        "aclEnable": "true",
        "rocketmqHome": str(home),
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": "admin-user", "secretKey": "admin-secret"}
        ),
    }
    async with cluster(slaves=1, settings=settings) as servers:
        [master], [slave] = servers.masters, servers.slaves
        async with SigningClient(master.address, "admin-user", "admin-secret") as admin:
            assert (await admin.send("Copied", b"x")).code == 0
        await eventually(lambda: "Copied" in slave.core.topics.names(), "the topics", 20)
