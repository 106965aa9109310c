"""Half a cluster down, wrong addresses, an admin that is not running: what is said, and what is done all the same."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cometmq.admin import Admin, PartialFailure, Target, new_group, new_topic, sync
from cometmq.base.errors import RemotingError, UsageError
from cometmq.client import Message
from cometmq.client.errors import ClientClosed, NoNameServer
from cometmq.testing import cluster

TIMEOUT = 1.5


@contextmanager
def silent_server() -> Iterator[str]:
    """Accepts connections and answers nothing: what a hanging broker looks like."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


async def test_a_dead_broker_is_told_and_does_not_hide_the_others() -> None:
    async with cluster(masters=2) as servers, Admin(servers.name_servers, timeout=TIMEOUT) as admin:
        await admin.topics.create(new_topic("orders", read_queues=1, write_queues=1))
        await admin.groups.create(new_group("billing"))
        alive, dead = servers.masters
        dead_address = dead.address
        await servers.kill(dead)
        target = Target(address=dead_address)

        refused = await admin.topics.create(new_topic("bills"), target)
        assert list(refused.failed) == [dead_address]
        with pytest.raises(PartialFailure, match=rf"failed at 1 of 1 servers \({dead_address}"):
            refused.raise_failed("creating the topic")
        assert [row.name for row in await admin.topics.rows() if row.name == "orders"]
        assert len((await admin.topics.status("orders")).queues) == 1
        assert (await admin.clusters.brokers()).rows[0].place.address == alive.address


async def test_a_broker_that_hangs_costs_its_timeout_and_no_more() -> None:
    with silent_server() as hanging:
        async with cluster() as servers, Admin(servers.name_servers, timeout=TIMEOUT) as admin:
            calls = admin._rooms.calls
            began = time.monotonic()

            async def ask(address: str, number: int) -> None:
                (await admin.brokers.runtime(Target(address=address))).raise_failed()

            answers = await calls.fan_out.many(
                {hanging: range(200), servers.broker_address: range(200)}, ask
            )
            assert list(answers.failed) == [hanging]
            assert len(answers.done[servers.broker_address]) == 200
            # One after the other they would have taken 200 of them.
            assert time.monotonic() - began < 20 * TIMEOUT


async def test_nobody_at_the_name_servers_address() -> None:
    async with Admin("127.0.0.1:1", timeout=TIMEOUT) as admin:
        with pytest.raises(NoNameServer, match="no name server answered"):
            await admin.topics.names()
        # An address needs no name server.
        answers = await admin.brokers.settings(Target(address="127.0.0.1:1"))
        assert isinstance(answers.failed["127.0.0.1:1"], RemotingError)


async def test_the_second_name_server_is_asked_if_the_first_hangs() -> None:
    with silent_server() as hanging:
        async with (
            cluster() as servers,
            Admin([hanging, servers.name_servers], timeout=TIMEOUT) as admin,
        ):
            assert len(await admin.clusters.all()) == 1
            told = await admin.name_servers.settings()
            assert (list(told.done), list(told.failed)) == ([servers.name_servers], [hanging])


async def test_a_refusal_of_one_broker_is_told_with_what_the_others_did() -> None:
    async with (
        cluster(masters=1, slaves=1) as servers,
        Admin(servers.name_servers, timeout=TIMEOUT) as admin,
    ):
        every = Target(cluster="DefaultCluster", with_slaves=True)
        answers = await admin.groups.create(new_group("billing"), every)
        [master], [slave] = servers.masters, servers.slaves
        assert (list(answers.done), list(answers.failed)) == ([master.address], [slave.address])
        with pytest.raises(PartialFailure, match=f"done at {master.address}"):
            answers.raise_failed("creating the group")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name_servers": "nowhere"}, "expected an address like"),
        ({"controllers": "nowhere"}, "expected an address like"),
        ({"timeout": 0}, "expected a timeout in seconds above 0"),
        ({"concurrency": 0}, "at least one server at once"),
    ],
)
def test_what_admin_does_not_take(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Admin(**{"name_servers": "127.0.0.1:9876", **arguments})  # type: ignore[arg-type]


async def test_an_admin_outside_of_its_block_says_so() -> None:
    admin = Admin("127.0.0.1:9876")
    with pytest.raises(ClientClosed, match="async with"):
        await admin.topics.names()


def test_the_blocking_face_does_the_same() -> None:
    with cluster() as servers, sync.Admin(servers.name_servers) as admin:
        created = admin.topics.create(new_topic("orders", read_queues=1, write_queues=1))
        assert created.is_complete
        for number in range(70):
            admin.messages.send(Message(topic="orders", body=b"%d" % number))
        bodies = [message.body for message in admin.messages.scan("orders")]
        assert bodies == [b"%d" % number for number in range(70)]
        scan = admin.messages.scan("orders")
        assert next(scan).body == b"0"
        scan.close()  # type: ignore[attr-defined]
        assert admin.name_servers.addresses == [servers.name_servers]
        with pytest.raises(UsageError, match="illegal characters"):
            admin.topics.create(new_topic("no name!"))
    with pytest.raises(ClientClosed):
        admin.topics.names()


def test_the_blocking_face_in_a_coroutine_says_what_to_use() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="event loop"), sync.Admin("127.0.0.1:9876"):
            pass

    asyncio.run(main())
