"""Our admin library with RocketMQ's servers: the same walk as with ours (tests/integration/admin)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.admin.walk import STEPS, System, run_step

from cometmq.admin import Admin, Definitions
from cometmq.protocol.bodies.auth import PlainAccess, User

from .account_servers import OPEN, OPERATOR, GuardedBroker, plain_servers, user_servers
from .conftest import required
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, THEIRS, Broker, NameServer, commands_of

# The first test waits for the servers.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 64 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
    # Otherwise a new group begins at offset 0 of a queue whose messages are all in memory, whatever it asks for.
    "accessMessageInMemoryMaxRatio": 0,
}


@dataclass(frozen=True)
class Running:
    make: str
    name_server: str


@pytest.fixture(scope="module", params=THEIRS)
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A name server and two masters of RocketMQ."""
    directory = tmp_path_factory.mktemp("admin")
    with required(), ExitStack() as stack:
        commands = commands_of(request.param, directory / "home")
        name_server = stack.enter_context(NameServer(commands, directory / "namesrv").running())
        for name in ("broker-a", "broker-b"):
            broker = Broker([name_server], directory / name, name, **SETTINGS)
            stack.callback(broker.kill)
            broker.start(commands)
        yield Running(request.param, name_server.address)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_step(step: Callable[[System], Awaitable[None]], running: Running) -> None:
    run_step(step, running.name_server, is_rocketmq_4=running.make == ROCKETMQ_4)


def _admin(guarded: GuardedBroker) -> Admin:
    return Admin(config=guarded.client_config(OPERATOR), timeout=10)


@pytest.mark.parametrize("make", [OURS, ROCKETMQ_4])
def test_plain_accounts(make: str, tmp_path: Path) -> None:
    """Of RocketMQ 4."""
    with required(), plain_servers(tmp_path, [make]) as servers:
        asyncio.run(_change_plain_accounts(servers[make]))


async def _change_plain_accounts(guarded: GuardedBroker) -> None:
    async with _admin(guarded) as admin:
        accounts = admin.plain_accounts
        shop = PlainAccess(
            access_key="shop-user",
            secret_key="shop-secret",
            default_topic_perm="DENY",
            topic_perms=["orders=PUB|SUB", "bills=SUB"],
        )
        (await accounts.put(shop)).raise_failed("creating the account")
        [table] = (await accounts.all()).raise_failed().values()
        told = {one.access_key: one for one in table.plain_access_configs}
        assert told["shop-user"].topic_perms == ["orders=PUB|SUB", "bills=SUB"]
        assert told["shop-user"].secret_key == "shop-secret"
        assert told[OPERATOR.name].admin
        assert "10.10.103.*" in table.global_white_addrs
        [version] = (await accounts.versions()).raise_failed().values()
        assert version.broker_name == guarded.broker.name
        assert any(path.endswith("plain_acl.yml") for path in version.files)
        (await accounts.set_white_addresses(["10.1.2.*"])).raise_failed()
        (await accounts.delete("shop-user")).raise_failed("deleting the account")
        again = await accounts.delete("shop-user")
        assert "shop-user" in str(again.failed[guarded.address])
        # The rest of the library is signed as well.
        assert len((await admin.topics.status(OPEN)).queues) == 1


@pytest.mark.parametrize("make", [OURS, ROCKETMQ_5])
def test_users(make: str, tmp_path: Path) -> None:
    """Of RocketMQ 5."""
    with required(), user_servers(tmp_path, [make]) as servers:
        asyncio.run(_change_users(servers[make]))


async def _change_users(guarded: GuardedBroker) -> None:
    async with _admin(guarded) as admin:
        users, acls, address = admin.users, admin.acls, guarded.address
        (await users.create("shop", "shop-password")).raise_failed("creating the user")
        told = (await users.get("shop")).raise_failed().done[address]
        assert told is not None
        assert (told.user_type, told.user_status) == ("Normal", "enable")
        assert (await users.get("nobody")).done == {address: None}
        (await users.update("shop", user_status="disable")).raise_failed()
        assert [
            (one.username, one.user_status) for one in (await users.all("sho")).done[address]
        ] == [("shop", "disable")]
        (await acls.create("User:shop", ["Topic:orders", "Group:*"], ["Pub", "Sub"])).raise_failed()
        (await acls.update("User:shop", ["Topic:orders"], ["Pub"], decision="Deny")).raise_failed()
        (await acls.delete("User:shop", "Group:*")).raise_failed()
        acl = (await acls.get("User:shop")).raise_failed().done[address]
        assert acl is not None
        [entry] = acl.policies[0].entries
        assert (entry.resource, entry.actions, entry.decision) == ("Topic:orders", ["Pub"], "Deny")
        assert [one.subject for one in (await acls.all("shop")).done[address]] == ["User:shop"]
        definitions = await admin.definitions.read(with_accounts=True)
        assert "shop" in {user.username for user in definitions.users}
        (await users.delete("shop")).raise_failed()
        assert (await users.get("shop")).done == {address: None}
        done = await admin.definitions.write(
            Definitions(
                users=[User(username="shop", password="shop-password")],
                acls=[one for one in definitions.acls if one.subject == "User:shop"],
            )
        )
        assert (done.is_complete, [change.name for change in done.done]) == (
            True,
            ["shop", "User:shop"],
        )
