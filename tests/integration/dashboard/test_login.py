"""Who may do what, at brokers that check accounts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.integration.dashboard.visitor import Visitor, dashboard

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.admin import Admin, new_topic
from cometmq.base.errors import ConfigError
from cometmq.client import ClientConfig, Credentials
from cometmq.dashboard.dashboard_config import DashboardConfig
from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster

ROOT = Credentials(access_key="root", secret_key="root-password-1")
ACCOUNTS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": LOCAL_USERS,
    "authorizationMetadataProvider": LOCAL_ACLS,
    "initAuthenticationUser": json.dumps({"username": "root", "password": ROOT.secret_key}),
    "innerClientAuthenticationCredentials": json.dumps(
        {"accessKey": "inner", "secretKey": "inner-password-1"}
    ),
}
OWN = ClientConfig(credentials=ROOT)
ROLES = {"operators": "olga", "viewers": "vera, 'or''1'='1"}


@pytest.fixture(scope="module")
def servers() -> Iterator[Cluster]:
    with cluster(settings=ACCOUNTS) as running:
        asyncio.run(_people(running.name_servers))
        yield running


async def _people(name_servers: str) -> None:
    async with Admin(name_servers, config=OWN) as admin:
        await admin.topics.create(new_topic("Orders"))
        for name in ("olga", "vera", "stranger"):
            await admin.users.create(name, f"{name}-password")
        every = ["Topic:*", "Group:*", "Cluster:*"]
        await admin.acls.create("User:olga", every, ["All"])
        await admin.acls.create("User:vera", ["Cluster:*"], ["Get"])


async def test_roles(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, client=OWN, **ROLES) as (server, visitor):
        me = await visitor.get("me")
        assert (me["user"], me["login_required"], me["csrf_token"]) == (None, True, "")
        assert me["sites"][0]["name_servers"] == []
        assert (await visitor.ask("topics")).status == 401
        assert (await visitor.raw("GET", "/api/v1/health")).status == 200

        vera, olga, root = (Visitor(server.port) for _ in range(3))
        assert (await vera.log_in("vera", "vera-password")).json()["role"] == "viewer"
        assert (await olga.log_in("olga", "olga-password")).json()["role"] == "operator"
        assert (await root.log_in("root", ROOT.secret_key)).json()["role"] == "admin"
        assert (await vera.get("topics"))["total"] > 0
        assert (await vera.ask("create_topic", body={"name": "Made"})).error == "role"
        assert (await olga.do("create_topic", name="Made"))["failed"] == []
        made = {"topic": "Made"}
        assert (await olga.ask("delete_topic", made, body={"confirm": "Made"})).error == "role"
        assert (await root.do("delete_topic", made, confirm="Made"))["failed"] == []
        assert (await olga.ask("audit")).error == "role"
        rows = (await root.get("audit"))["rows"]
        assert {(row["user"], row["action"]) for row in rows} >= {
            ("vera", "log_in"),
            ("vera", "create_topic"),
            ("olga", "delete_topic"),
            ("olga", "create_topic"),
            ("root", "delete_topic"),
        }
        [refused] = [row for row in rows if row["user"] == "vera" and row["role"] == "viewer"][:1]
        assert refused["result"] == "create_topic is for the role operator; vera is viewer"
        assert "password" not in json.dumps(rows)


async def test_brokers_decide_what_an_account_may_read(servers: Cluster) -> None:
    """A role in the dashboard gives no rights at the brokers: messages are read with the account of who looks."""
    async with dashboard(servers.name_servers, client=OWN, **ROLES) as (_, visitor):
        await visitor.log_in("vera", "vera-password")
        answer = await visitor.ask("messages", query={"topic": "Orders"})
        assert answer.status == 403
        assert b"no permission" in answer.body


WRONG = (
    ("vera", "wrong", "wrong_password"),
    ("nobody", "vera-password", "wrong_password"),
    ("has no permission", "x", "wrong_password"),
    ("stranger", "stranger-password", "no_role"),
    ("'or''1'='1", "x", "wrong_password"),
)


async def test_refused(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, client=OWN, **ROLES) as (_, visitor):
        for name, password, code in WRONG:
            answer = await visitor.log_in(name, password)
            status = 401 if code == "wrong_password" else 403
            assert (answer.status, answer.error) == (status, code), name
            assert "set-cookie" not in answer.headers
            assert (await visitor.ask("topics")).status == 401


async def test_a_login_ends(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, client=OWN, **ROLES) as (_, visitor):
        answer = await visitor.log_in("vera", "vera-password")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert (await visitor.ask("topics")).status == 200
        await visitor.ask("log_out")
        assert (await visitor.ask("topics")).status == 401


async def test_tries_are_limited(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, client=OWN, logins_per_minute=3, **ROLES) as (
        _,
        visitor,
    ):
        errors = [(await visitor.log_in("vera", "wrong")).error for _ in range(5)]
        assert errors == ["wrong_password"] * 3 + ["too_often"] * 2
        assert (await visitor.log_in("vera", "vera-password")).headers["retry-after"]


async def test_accounts_are_changed(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, client=OWN) as (_, visitor):
        await visitor.log_in("root", ROOT.secret_key)
        await visitor.do("put_account", name="new", password="new-password")
        await visitor.do(
            "put_account_rule", {"account": "new"}, resource="Topic:Orders", actions=["Pub"]
        )
        accounts = await visitor.get("accounts")
        [new] = [row for row in accounts["rows"] if row["name"] == "new"]
        assert accounts["checked"]
        assert [rule["resource"] for rule in new["rules"]] == ["Topic:Orders"]
        assert "new-password" not in json.dumps(accounts)
        await visitor.do("delete_account", {"account": "new"}, confirm="new")
        refused = await visitor.ask("delete_account", {"account": "root"}, body={"confirm": "root"})
        assert refused.status == 400


async def test_a_cluster_without_accounts_lets_nobody_log_in() -> None:
    async with (
        cluster() as servers,
        dashboard(servers.name_servers, login="always") as (
            _,
            visitor,
        ),
    ):
        assert (await visitor.log_in("anybody", "anything")).error == "no_accounts"


async def test_read_only(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, client=OWN, is_read_only=True) as (_, visitor):
        await visitor.log_in("root", ROOT.secret_key)
        assert (await visitor.ask("create_topic", body={"name": "Made"})).error == "read_only"


def test_plain_http_beyond_loopback_does_not_start() -> None:
    with pytest.raises(ConfigError, match="passwords would cross the network in plain text"):
        DashboardConfig(bind_address="192.0.2.1")
