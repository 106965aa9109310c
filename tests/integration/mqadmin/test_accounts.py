"""Subcommands of ``mqadmin`` about accounts; its own come from the file of ``cometmq init``, or from tools.yml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.mqadmin.tool import Tool
from tests.integration.secure_set_up import SecureSetUp, running

from cometmq.cli.mqadmin.accounts import acls, plain_accounts, users
from cometmq.testing import cluster

PLAIN = """
accounts:
- accessKey: admin-user
  secretKey: admin-secret
  admin: true
"""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureSetUp]:
    with running(tmp_path_factory.mktemp("mqadmin") / "secure") as set_up:
        yield set_up


def test_users_and_acls(secure: SecureSetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool(name_server(secure))
    refused = tool.bad(f"listUser -b {secure.broker}", 1)
    assert secure.broker in refused
    monkeypatch.setenv("COMETMQ_CLIENT_CONFIG", str(secure.directory / "tools.conf"))
    assert "COMETMQ_SECRET_KEY" in tool.bad(f"listUser -b {secure.broker}", 2)
    monkeypatch.setenv("COMETMQ_SECRET_KEY", secure.secret)
    b = f"-b {secure.broker}"
    assert tool.ok(f"createUser {b} -u shop -p password-1") == (
        f"create user to {secure.broker} success.\n"
    )
    assert "existed" in tool.bad(f"createUser {b} -u shop -p password-1", 1)
    assert tool(f"getUser {b} -u shop").rows[1][0] == "shop"
    assert tool.ok(f"getUser {b} -u nobody") == ""
    tool.ok(f"updateUser {b} -u shop -s disable")
    [user] = tool.json(f"listUser {b} -f shop")
    assert (user["username"], user["user_status"]) == ("shop", "disable")
    assert "already been selected" in tool.bad(f"updateUser {b} -u shop -s enable -t Super", 2)
    tool.ok(f"createAcl {b} -s User:shop -r Topic:Orders,Group:billing -a Pub,Sub -d Allow")
    tool.ok(f"updateAcl {b} -s User:shop -r Topic:Orders -a Pub -d Deny -i 10.0.0.0/8")
    rows = tool(f"getAcl {b} -s User:shop").rows
    assert ["User:shop", "Custom", "Topic:Orders", "[Pub]", "[10.0.0.0/8]", "Deny"] in rows
    assert len(tool(f"listAcl {b} -s shop").rows) == 3
    for line in (f"copyUser -f {secure.broker} -t {secure.broker} -u shop", "copyAcl"):
        name = "shop" if line.startswith("copyUser") else "User:shop"
        flags = (
            ""
            if line.startswith("copyUser")
            else f" -f {secure.broker} -t {secure.broker} -s {name}"
        )
        assert f" of {name} from " in tool.ok(f"{line}{flags}")
    assert "what" not in tool.bad(f"deleteUser {b} -u shop", 2)
    tool.ok(f"deleteAcl {b} -s User:shop -r Topic:Orders --yes")
    assert tool.ok(f"deleteUser {b} -u shop --yes") == f"delete user to {secure.broker} success.\n"
    assert tool.ran >= {command.name for command in (*users.COMMANDS, *acls.COMMANDS)}


def name_server(secure: SecureSetUp) -> str:
    text = (secure.directory / "tools.conf").read_text()
    return next(
        line.partition("=")[2].strip()
        for line in text.splitlines()
        if line.startswith("rocketmq.namesrv.addr")
    )


def test_accounts_of_rocketmq_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "plain_acl.yml").write_text(PLAIN)
    with cluster(settings={"aclEnable": "true", "rocketmqHome": str(home)}) as servers:
        tool = Tool(servers.name_servers)
        b = f"-b {servers.broker_address}"
        assert "No accessKey is configured" in tool.bad(f"brokerStatus {b}", 1)
        monkeypatch.setenv("ROCKETMQ_HOME", str(home))
        tools = home / "conf" / "tools.yml"
        tools.write_text("accessKey: admin-user\n")
        assert "expected both accessKey and secretKey" in tool.bad(f"brokerStatus {b}", 2)
        tools.write_text("accessKey: admin-user\nsecretKey: admin-secret\n")
        said = tool.ok(
            f"updateAclConfig {b} -a account123 -s secret123 -i DENY -t Open=PUB|SUB".replace(
                "|", "'|'"
            )
        )
        assert said.startswith(
            f"create or update plain access config to {servers.broker_address} success.\n"
        )
        assert "secret123" not in said
        versions = tool.ok(f"clusterAclConfigVersion {b}")
        assert "get broker's plain access config version success.\n" in versions
        assert "plain_acl.yml" in versions
        assert "success" in tool.ok(f"updateGlobalWhiteAddr {b} -g 10.10.154.1 --yes")
        assert tool.ok(f"deleteAclConfig {b} -a account123 --yes").endswith(
            "account's accesskey is:account123\n"
        )
        assert "account123" in tool.bad(f"deleteAclConfig {b} -a account123 --yes", 1)
        assert tool.ran >= {command.name for command in plain_accounts.COMMANDS}
