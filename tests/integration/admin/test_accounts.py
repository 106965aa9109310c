"""Users, rules and plain accounts, at brokers that check them; also a definitions file with accounts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.admin import Admin, DefinitionsError, NoSuchName, PartialFailure, Target, new_acl
from cometmq.base.errors import UsageError
from cometmq.client import ClientConfig, Credentials
from cometmq.protocol.bodies.auth import PlainAccess, User
from cometmq.testing import cluster

ROOT = Credentials(access_key="root", secret_key="root-password-1")
USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": LOCAL_USERS,
    "authorizationMetadataProvider": LOCAL_ACLS,
    "initAuthenticationUser": json.dumps({"username": "root", "password": ROOT.secret_key}),
    "innerClientAuthenticationCredentials": json.dumps(
        {"accessKey": "inner", "secretKey": "inner-password-1"}
    ),
}


def config(credentials: Credentials) -> ClientConfig:
    return ClientConfig(credentials=credentials)


async def test_users_and_what_they_may_do() -> None:
    async with (
        cluster(masters=2, settings=USERS) as servers,
        Admin(servers.name_servers, config=config(ROOT)) as admin,
    ):
        first, second = (master.address for master in servers.masters)
        assert len((await admin.users.create("shop", "shop-password")).done) == 2
        again = await admin.users.create("shop", "other", target=Target(address=first))
        assert "The user is existed" in str(again.failed[first])
        told = await admin.users.get("shop")
        assert {user and user.user_type for user in told.values()} == {"Normal"}
        assert (await admin.users.get("nobody")).values() == [None, None]
        await admin.users.update("shop", user_status="disable", target=Target(address=first))
        changed = (await admin.users.get("shop")).done
        assert [user and user.user_status for user in changed.values()] == ["disable", "enable"]
        await admin.users.update("shop", user_status="enable")
        with pytest.raises(UsageError, match="expected a new password"):
            await admin.users.update("shop")
        names = {user.username for user in (await admin.users.all()).done[first]}
        assert names == {"inner", "root", "shop"}
        assert [one.username for one in (await admin.users.all("sho")).done[first]] == ["shop"]

        await admin.acls.create("User:shop", ["Topic:orders", "Group:*"], ["Pub", "Sub"])
        [policy] = next(acl for acl in (await admin.acls.get("User:shop")).values() if acl).policies
        assert [entry.resource for entry in policy.entries] == ["Topic:orders", "Group:*"]
        assert (await admin.acls.delete("User:shop", "Group:*")).is_complete
        [acl] = (await admin.acls.all("shop")).done[first]
        assert [entry.resource for entry in acl.policies[0].entries] == ["Topic:orders"]
        with pytest.raises(UsageError, match="expected a subject such as User:alice"):
            await admin.acls.get("shop")
        with pytest.raises(UsageError, match="at least one resource"):
            new_acl("User:shop", [], ["Pub"])

        only_first = Target(address=first)
        await admin.users.create("clerk", "clerk-password", target=only_first)
        await admin.acls.create("User:clerk", ["Topic:*"], ["Sub"], target=only_first)
        assert await admin.users.copy(first, second, ["clerk"]) == ["clerk"]
        assert await admin.acls.copy(first, second, ["User:clerk"]) == ["User:clerk"]
        with pytest.raises(NoSuchName, match="'nobody'; there are: "):
            await admin.users.copy(first, second, ["nobody"])
        with pytest.raises(NoSuchName, match="'User:root'"):
            await admin.acls.copy(first, second, ["User:root"])
        clerk = Credentials(access_key="clerk", secret_key="clerk-password")
        async with Admin(servers.name_servers, config=config(clerk)) as other:
            refused = await other.users.create("friend", "friend-password")
            assert set(refused.failed) == {first, second}
            with pytest.raises(PartialFailure, match="no permission"):
                refused.raise_failed("creating the user")
        assert (await admin.users.delete("clerk")).is_complete
        assert (await admin.users.get("clerk")).values() == [None, None]


async def test_definitions_with_accounts_move_to_another_cluster() -> None:
    async with (
        cluster(settings=USERS) as servers,
        Admin(servers.name_servers, config=config(ROOT)) as admin,
    ):
        await admin.users.create("shop", "shop-password")
        await admin.acls.create("User:shop", ["Topic:orders"], ["Pub"])
        definitions = await admin.definitions.read(with_accounts=True)
    assert {user.username for user in definitions.users} == {"inner", "root", "shop"}
    definitions.topics, definitions.groups = [], []
    definitions.users = [User(username="shop", password="shop-password", user_type="Normal")]
    async with (
        cluster(settings=USERS) as servers,
        Admin(servers.name_servers, config=config(ROOT)) as admin,
    ):
        done = await admin.definitions.write(definitions)
        assert [str(change).partition(" at ")[0] for change in done.done] == [
            "create user shop",
            "create acl User:shop",
        ]
        assert (await admin.definitions.plan(definitions)).rows == []
        definitions.users[0].user_status = "disable"
        [change] = await admin.definitions.plan(definitions)
        assert (change.step, change.was) == ("change", "userType: Normal, userStatus: enable")
        assert (await admin.definitions.write(definitions)).is_complete
        definitions.users = [User(username="new")]
        with pytest.raises(DefinitionsError, match=r"user 'new': is new at .* has no password"):
            await admin.definitions.write(definitions)


async def test_plain_accounts(tmp_path: Path) -> None:
    conf = tmp_path / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "plain_acl.yml").write_text(
        "accounts:\n- accessKey: admin-user\n  secretKey: admin-secret\n  admin: true\n"
        "globalWhiteRemoteAddresses: []\n"
    )
    operator = Credentials(access_key="admin-user", secret_key="admin-secret")
    settings = {"aclEnable": "true", "rocketmqHome": str(tmp_path / "home")}
    async with (
        cluster(settings=settings) as servers,
        Admin(servers.name_servers, config=config(operator)) as admin,
    ):
        shop = PlainAccess(
            access_key="shop-user",
            secret_key="shop-secret",
            default_topic_perm="DENY",
            topic_perms=["orders=PUB|SUB", "bills=SUB"],
        )
        assert (await admin.plain_accounts.put(shop)).is_complete
        [table] = (await admin.plain_accounts.all()).values()
        [told] = [one for one in table.plain_access_configs if one.access_key == "shop-user"]
        assert told.topic_perms == ["orders=PUB|SUB", "bills=SUB"]
        assert "shop-secret" not in repr(told)
        [version] = (await admin.plain_accounts.versions()).values()
        assert [path for path in version.files if path.endswith("plain_acl.yml")]
        assert (await admin.plain_accounts.set_white_addresses(["10.1.2.*"])).is_complete
        assert (await admin.plain_accounts.delete("shop-user")).is_complete
        [address] = (await admin.plain_accounts.delete("shop-user")).failed
        assert address == servers.broker_address
        with pytest.raises(UsageError, match="expected an access_key and a secret_key"):
            await admin.plain_accounts.put(PlainAccess(access_key="shop-user"))
