"""Several brokers on one machine, ``cometmq up --brokers``: one in the process, the others in their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.raw_client import RawClient
from tests.integration.several_brokers import (
    Up,
    bodies_of,
    brokers_with,
    is_running,
    ports_for,
    producer_of,
    send_to_all,
    up,
    words_of,
)
from tests.integration.signing_client import SigningClient

from cometmq import standalone
from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.base.errors import ConfigError
from cometmq.client import Message
from cometmq.standalone import INNER_KEY, Place, Standalone, page_ports

NAMES = {"standalone", "standalone-2", "standalone-3"}
QUIET = ("--log-level", "ERROR")


async def test_sends_reach_all_of_them(tmp_path: Path) -> None:
    ports = ports_for(3)
    async with up(tmp_path, 3, *QUIET, ports=ports) as servers:
        assert list(servers.addresses.items()) == [
            ("standalone", f"127.0.0.1:{ports[0]}"),
            ("standalone-2", f"127.0.0.1:{ports[1]}"),
            ("standalone-3", f"127.0.0.1:{ports[2]}"),
        ]
        assert servers.children().keys() == NAMES - {"standalone"}
        sent = await send_to_all(servers.name_server, NAMES)
        assert sorted(await bodies_of(servers.name_server, "T")) == sorted(sent)
    assert {path.name for path in tmp_path.glob("store*")} == {"store", "store-2", "store-3"}


async def test_a_topic_made_by_one_send_is_at_all_of_them(tmp_path: Path) -> None:
    async with up(tmp_path, 3, *QUIET) as servers:
        async with producer_of(servers.name_server) as producer:
            await producer.send(Message(topic="Orders", body=b"the only one"))

        async def is_everywhere() -> bool:
            return await brokers_with(servers.name_server, "Orders") == NAMES

        await eventually(is_everywhere, "all brokers have the topic")


async def test_a_topic_made_by_an_operator_is_at_all_of_them(tmp_path: Path) -> None:
    async with up(tmp_path, 3, *QUIET) as servers:
        mqadmin = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).with_name("mqadmin"), "updateTopic"),
            *("-n", servers.name_server, "-c", "DefaultCluster", "-t", "Orders"),
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await mqadmin.wait() == 0
        assert await brokers_with(servers.name_server, "Orders") == NAMES


async def test_a_killed_one_comes_back_with_its_messages(tmp_path: Path) -> None:
    async with up(tmp_path, 2, *QUIET, ports=ports_for(2)) as servers:
        names = {"standalone", "standalone-2"}
        sent = await send_to_all(servers.name_server, names)
        [pid] = servers.children().values()
        os.kill(pid, signal.SIGKILL)

        async def is_back() -> bool:
            is_new = servers.children().get("standalone-2", pid) != pid
            return is_new and await brokers_with(servers.name_server, "T") == names

        await eventually(is_back, "the broker is back")
        assert sorted(await bodies_of(servers.name_server, "T")) == sorted(sent)
        assert await servers.end() == 0
        assert (
            "broker ended by itself name=standalone-2 reason=killed by SIGKILL; starting it "
            in (await servers.complaint())
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_they_end_together_and_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    async with up(tmp_path, 3, *QUIET) as servers:
        await send_to_all(servers.name_server, NAMES)
        stores = list(tmp_path.glob("store*"))
        assert all((store / "abort").exists() for store in stores)
        children = servers.children().values()
        assert await servers.end(number) == 0
        assert not any(map(is_running, children))
        assert await servers.complaint() == ""
    assert len(stores) == 3
    assert not any((store / "abort").exists() for store in stores)


async def test_they_end_when_each_is_told_to(tmp_path: Path) -> None:
    """As systemd does it: every process of a service gets SIGTERM."""
    async with up(tmp_path, 3, *QUIET) as servers:
        for pid in servers.children().values():
            os.kill(pid, signal.SIGTERM)
        assert await servers.end() == 0


async def test_none_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    async with up(tmp_path, 3, *QUIET) as servers:
        sent = await send_to_all(servers.name_server, NAMES)
        children = servers.children().values()
        await servers.end(signal.SIGKILL)
        await eventually(lambda: not any(map(is_running, children)), "no broker is left")
    async with up(tmp_path, 3, *QUIET) as again:
        assert sorted(await bodies_of(again.name_server, "T")) == sorted(sent)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_an_end_while_they_start(tmp_path: Path, number: signal.Signals) -> None:
    servers = Up(tmp_path, 3)
    await servers.begin(*QUIET)
    await eventually(servers.children, "a process of a further broker")
    assert await servers.end(number) == (0 if number is signal.SIGTERM else -number)
    # They have our standard error as well: it is read to its end when the last one has ended.
    assert await servers.complaint() == ""


async def test_one_that_dies_again_and_again_is_given_up(tmp_path: Path) -> None:
    async with up(tmp_path, 2, *QUIET) as servers:
        killed: set[int] = set()

        def is_over() -> bool:
            if servers.process.returncode is not None:
                return True
            for pid in set(servers.children().values()) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            return False

        await eventually(is_over, "it has given up", seconds=60)
        assert servers.process.returncode == 1
        assert (await servers.complaint()).splitlines()[-1] == (
            "cometmq up: broker standalone-2 ended again and again: killed by SIGKILL"
        )
        assert 2 < len(killed) < 10


async def test_a_port_that_is_taken(tmp_path: Path) -> None:
    ports = ports_for(3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[1]))
        taken.listen()
        servers = Up(tmp_path, 3, ports)
        await servers.begin(*QUIET)
        assert await servers.complaint() == (
            f"cometmq up: broker standalone-2: cannot listen on 127.0.0.1:{ports[1]}: Address already in use; "
            "is another server running there?\n"
        )
        assert await servers.process.wait() == 1
        assert servers.process.stdout is not None
        assert await servers.process.stdout.read() == b""


async def test_accounts_hold_at_all_of_them_and_secrets_are_not_shown(tmp_path: Path) -> None:
    settings = {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationMetadataProvider": LOCAL_USERS,
        "authorizationMetadataProvider": LOCAL_ACLS,
        "initAuthenticationUser": json.dumps({"username": "root", "password": "root-password-1"}),
        INNER_KEY: json.dumps({"accessKey": "inner", "secretKey": "inner-password-1"}),
    }
    options = [word for key in settings for word in ("--set", f"{key}={settings[key]}")]
    async with up(tmp_path, 2, *QUIET, *options) as servers:
        for pid in servers.children().values():
            assert "password" not in " ".join(words_of(pid))
            assert "password" not in Path(f"/proc/{pid}/environ").read_text()
        for address in servers.addresses.values():
            async with RawClient(address) as stranger:
                assert (await stranger.send("T", b"x")).code == 16
            async with SigningClient(address, "root", "root-password-1") as root:
                assert (await root.send("T", b"x")).code == 0
        # The brokers prove to each other who they are.
        async with SigningClient(
            servers.addresses["standalone"], "root", "root-password-1"
        ) as root:
            assert (await root.send("Orders", b"x")).code == 0
        topics = tmp_path / "store-2" / "config" / "topics.json"
        await eventually(
            lambda: topics.exists() and "Orders" in topics.read_text(),
            "the topic is at the other one",
        )


async def test_systemd_is_told_once_that_all_are_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        async with up(tmp_path / "data", 2, *QUIET, environment=environment) as servers:
            assert manager.recv(4096) == b"READY=1"
            assert await servers.end() == 0
            assert manager.recv(4096) == b"STOPPING=1"
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(4096)


async def test_a_dump_is_of_all(tmp_path: Path) -> None:
    async with up(tmp_path, 2, *QUIET) as servers:
        servers.process.send_signal(signal.SIGUSR1)
        for store in ("store", "store-2"):
            await eventually((tmp_path / store / "dump.txt").exists, f"a dump of {store}")
        assert servers.children()


async def test_fewer_brokers_than_before_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "store-3").mkdir()
    async with up(tmp_path, 2, "--log-level", "WARNING") as servers:
        assert await servers.end() == 0
        assert f"path={tmp_path}/store-3; start with --brokers 3" in await servers.complaint()


async def test_their_places_are_those_of_brokers_in_one_process(tmp_path: Path) -> None:
    port = ports_for(3)[0]
    directory = str(tmp_path)
    async with Standalone(
        directory, namesrv_port=0, broker_port=port, masters_elsewhere=2
    ) as servers:
        apart = [servers.settings_of(Place(group, 0)) for group in range(3)]
    async with Standalone(directory, namesrv_port=0, broker_port=port, masters=3) as together:
        configs = [broker.live.current for broker in together.brokers]
    assert [one["brokerName"] for one in apart] == [one.identity.broker_name for one in configs]
    assert [one["listenPort"] for one in apart] == [str(one.network.listen_port) for one in configs]
    assert [one["storePathRootDir"] for one in apart] == [one.store.root for one in configs]


async def test_a_broker_that_does_not_register_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone, "FOLLOW_SECONDS_MAX", 0.05)
    async with Standalone(str(tmp_path), namesrv_port=0, broker_port=0) as servers:
        await servers.wait_for_masters(["standalone"])
        with pytest.raises(ConfigError, match="does not know standalone-2, standalone-3 after 0"):
            await servers.wait_for_masters(["standalone-3", "standalone", "standalone-2"])


@pytest.mark.parametrize(
    ("settings", "ports"),
    [
        ({"metricsExporterType": "PROM"}, [("5557", None), ("5558", None), ("5559", None)]),
        (
            {"metricsExporterType": "2", "metricsPromExporterPort": "7000"},
            [("7000", None), ("7001", None), ("7002", None)],
        ),
        ({"healthPort": "8000"}, [(None, "8000"), (None, "8001"), (None, "8002")]),
        ({"healthPort": "0"}, [(None, "0")] * 3),
        ({"healthPort": "x"}, [(None, "x")] * 3),
    ],
)
def test_each_has_ports_of_its_own_for_metrics_and_health(
    settings: dict[str, str], ports: list[tuple[str | None, str | None]]
) -> None:
    found = [{**settings, **page_ports(settings, position)} for position in range(3)]
    assert [(one.get("metricsPromExporterPort"), one.get("healthPort")) for one in found] == ports


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"listenPort": "1"}, "listenPort cannot be set for 2 brokers"),
        ({"auditLogPath": "a", "dumpPath": "b"}, "auditLogPath, dumpPath cannot be set for 2 brok"),
        ({"namesrvAddr": "a:1"}, "they register with the name server that runs here"),
    ],
)
def test_what_cannot_hold_for_all_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Standalone("unused", masters_elsewhere=1, broker_settings=settings)


def test_ports_beyond_the_last_one_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no room for 5 brokers from port 65500 on: .* at 65540"):
        Standalone("unused", broker_port=65500, masters_elsewhere=4)
