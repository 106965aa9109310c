"""Registration against name servers that are plain objects."""

from __future__ import annotations

import asyncio
import logging
import threading
import zlib
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.eventually import eventually

from cometmq.base.errors import ConnectFailed
from cometmq.broker import registration as module
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.registration import Registration
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.register import decode_register_body, encode_register_body
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.store.meta.topics import TopicTable
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles


class NameServerStub:
    """One connection at a time; ``is_down`` refuses, ``code`` answers."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.is_down = False
        self.code = 0
        self.version_changed = "false"
        self.body = b""
        self.connection = self

    async def call(self, command: Command, timeout: float) -> Command:
        self.requests.append(command)
        ext = {"changed": self.version_changed} if command.code == 322 else None
        return command.reply(self.code, ext=ext, body=self.body)

    def restart(self) -> None:
        """The same server behind a new connection."""
        again = NameServerStub()
        again.requests = self.requests
        self.connection = again

    def topics(self, number: int = -1) -> set[str]:
        request = [one for one in self.requests if one.code == 103][number]
        assert request.ext is not None
        assert int(request.ext["bodyCrc32"]) == zlib.crc32(bytes(request.body)) & 0x7FFFFFFF
        body = decode_register_body(
            bytes(request.body),
            compressed=request.ext["compressed"] == "true",
            version=request.version,
        )
        return set(body.topics.topic_config_table)

    def codes(self) -> list[int]:
        return [request.code for request in self.requests]


class ClientStub:
    def __init__(self, servers: dict[str, NameServerStub]) -> None:
        self._servers = servers

    def sign(self, command: Command) -> None:
        """No account."""

    async def connection(self, address: str) -> NameServerStub:
        server = self._servers[address]
        if server.is_down:
            raise ConnectFailed(f"nobody answers at {address}")
        return server.connection

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        return await (await self.connection(address)).call(command, timeout)


class Announcing:
    def __init__(self, count: int = 1, **settings: str) -> None:
        self.servers = {f"ns{number}:9876": NameServerStub() for number in range(count)}
        clock = FakeClock()
        files = FaultyFiles(clock)
        config, _ = load_broker_config({"brokerName": "b49", **settings})
        self.topics = TopicTable("/config", files, clock)
        self.topics.load()
        self.topics.put(TopicConfig(topic_name="Old"))
        self.live = LiveConfig(config, clock=clock, files=files)
        self.registration = Registration(
            live=self.live,
            topics=self.topics,
            client=cast(RemotingClient, ClientStub(self.servers)),
            name_servers=self.servers,
            address="127.0.0.1:10911",
        )
        self.registration.ha_address = "127.0.0.1:10912"

    @property
    def first(self) -> NameServerStub:
        return self.servers["ns0:9876"]

    async def add(self, name: str) -> None:
        config = TopicConfig(topic_name=name)
        self.topics.put(config)
        await self.registration.announce([config])


@pytest.mark.parametrize("at_once", [0, 1])
async def test_a_large_body_is_put_together_off_the_loop(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """That of ten thousand topics takes fifty milliseconds. A thread for a small one would take longer than it does."""
    threads: list[int] = []

    def encode(*args: Any, **kwargs: Any) -> bytes:
        threads.append(threading.get_ident())
        return encode_register_body(*args, **kwargs)

    monkeypatch.setattr(module, "encode_register_body", encode)
    monkeypatch.setattr(module, "ENCODED_AT_ONCE", at_once)
    announcing = Announcing()
    await announcing.registration.start()
    await announcing.registration.stop()
    assert announcing.first.topics() == {"Old"}
    assert len(threads) == 1
    assert (threading.get_ident() in threads) is bool(at_once)


async def test_every_name_server_learns_all_topics_at_the_start_and_the_end_at_the_stop() -> None:
    announcing = Announcing(3)
    await announcing.registration.start()
    for server in announcing.servers.values():
        assert server.codes() == [103]
        assert server.topics() == {"Old"}
    ext = announcing.first.requests[0].ext
    assert ext is not None
    assert ext == {
        "brokerName": "b49",
        "brokerAddr": "127.0.0.1:10911",
        "clusterName": "DefaultCluster",
        "haServerAddr": "127.0.0.1:10912",
        "brokerId": "0",
        "compressed": "false",
        "bodyCrc32": ext["bodyCrc32"],
        "enableActingMaster": "false",
    }
    await announcing.registration.stop()
    for server in announcing.servers.values():
        assert server.codes() == [103, 104]


async def test_a_change_is_sent_alone_and_everything_over_a_new_connection() -> None:
    announcing = Announcing()
    await announcing.registration.start()
    await announcing.add("New")
    assert announcing.first.topics() == {"New"}
    announcing.first.restart()
    await announcing.add("Newer")
    assert announcing.first.topics() == {"Old", "New", "Newer"}
    await announcing.registration.stop()


async def test_what_a_name_server_missed_comes_with_the_next_change() -> None:
    announcing = Announcing(2)
    await announcing.registration.start()
    announcing.first.is_down = True
    await announcing.add("Missed")
    assert announcing.servers["ns1:9876"].topics() == {"Missed"}
    announcing.first.is_down = False
    await announcing.add("Next")
    assert announcing.first.topics() == {"Old", "Missed", "Next"}
    await announcing.registration.stop()


async def test_a_start_and_a_stop_do_without_name_servers(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "cometmq.broker"):
        announcing = Announcing()
        announcing.first.is_down = True
        await announcing.registration.start()
        await announcing.add("New")
        await announcing.add("Newer")
        await announcing.registration.stop()
        assert announcing.first.codes() == []
    assert [record.levelname for record in caplog.records] == ["WARNING"], (
        "once per change of state"
    )


async def test_a_refusal_counts_as_not_registered() -> None:
    announcing = Announcing()
    announcing.first.code = 1
    await announcing.registration.start()
    announcing.first.code = 0
    await announcing.add("New")
    assert announcing.first.topics() == {"Old", "New"}
    await announcing.registration.stop()


@pytest.mark.parametrize(("changed", "codes"), [("false", [103, 322]), ("true", [103, 322, 103])])
async def test_without_force_the_version_is_asked_first(
    changed: str, codes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PERIOD_SECONDS", (0.0, 0.0))
    announcing = Announcing(forceRegister="false")
    announcing.first.version_changed = changed
    await announcing.registration.start()
    await eventually(lambda: announcing.first.codes()[: len(codes)] == codes)
    await announcing.registration.stop()


async def test_topics_with_an_order_configuration_become_order_topics() -> None:
    announcing = Announcing()
    announcing.topics.put(TopicConfig(topic_name="Other", order=True))
    version = announcing.topics.version
    announcing.first.body = b'{"table":{"Old":"b49:4","Elsewhere":"b:1"}}'
    await announcing.registration.start()
    # As in RocketMQ, an entry makes a topic one in order, and a missing one does not take it back.
    found = {name: config.order for name, config in announcing.topics.all().items()}
    assert found == {"Old": True, "Other": True}
    assert announcing.topics.version.counter == version.counter + 1
    await announcing.registration.announce([])
    assert announcing.topics.version.counter == version.counter + 1
    await announcing.registration.stop()


async def test_an_order_configuration_that_nobody_understands_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    announcing = Announcing()
    announcing.first.body = b"[1"
    await announcing.registration.start()
    assert "order configuration not understood" in caplog.text
    assert "known" in repr(announcing.registration)
    await announcing.registration.stop()


async def test_a_broker_that_does_not_take_writes_tells_so_in_every_topic() -> None:
    announcing = Announcing(brokerPermission="4", compressedRegister="true")
    await announcing.registration.start()
    request = announcing.first.requests[0]
    body = decode_register_body(bytes(request.body), compressed=True, version=409)
    assert body.topics.topic_config_table["Old"].perm == 4
    kept = announcing.topics.get("Old")
    assert kept is not None
    assert kept.perm == 6
    await announcing.registration.stop()


async def test_a_broker_that_stops_taking_writes_tells_all_topics_in_a_new_version() -> None:
    announcing = Announcing()
    await announcing.registration.start()
    await announcing.add("New")
    version = announcing.topics.version
    announcing.live.update({"brokerPermission": "4"})
    await announcing.registration.announce([])
    body = decode_register_body(
        bytes(announcing.first.requests[-1].body), compressed=False, version=409
    )
    perms = {name: topic.perm for name, topic in body.topics.topic_config_table.items()}
    assert perms == {"Old": 4, "New": 4}
    assert body.topics.data_version == announcing.topics.version != version
    count = len(announcing.first.requests)
    announcing.live.update({"maxMessageSize": "1000000"})
    await asyncio.sleep(0)
    assert len(announcing.first.requests) == count, "nothing that name servers care for"
    await announcing.registration.stop()


async def test_a_topic_that_was_saved_after_another_was_told_is_told_in_a_new_version() -> None:
    """Otherwise a name server, which knows that version by then, would not look at the topic."""
    announcing = Announcing()
    await announcing.registration.start()
    late = TopicConfig(topic_name="Old", perm=4)
    announcing.topics.put(late)
    await announcing.add("Quick")
    told = announcing.topics.version
    await announcing.registration.announce([late])
    assert announcing.first.topics() == {"Old"}
    body = decode_register_body(
        bytes(announcing.first.requests[-1].body), compressed=False, version=409
    )
    assert body.topics.topic_config_table["Old"].perm == 4
    assert body.topics.data_version == announcing.topics.version != told
    await announcing.registration.stop()


async def test_it_can_be_taken_back_and_begun_again() -> None:
    announcing = Announcing()
    registration = announcing.registration
    await registration.stop()
    await registration.start()
    await registration.start()
    await registration.stop()
    await registration.stop()
    assert announcing.first.codes() == [103, 104]
    await asyncio.wait_for(announcing.add("Meanwhile"), 1)
    assert announcing.first.codes() == [103, 104], "nobody is told"
    await registration.start()
    assert announcing.first.topics() == {"Old", "Meanwhile"}
    await announcing.add("Later")
    assert announcing.first.topics() == {"Later"}
    await registration.stop()
    assert announcing.first.codes() == [103, 104, 103, 103, 104]


async def test_what_was_told_is_taken_back_under_the_name_it_was_told_by() -> None:
    announcing = Announcing()
    await announcing.registration.start()
    identity = replace(announcing.live.current.identity, role="SLAVE", slave_id=1)
    announcing.live.current = replace(announcing.live.current, identity=identity)
    await announcing.registration.stop()
    ext = announcing.first.requests[-1].ext
    assert ext is not None
    assert (announcing.first.codes(), ext["brokerId"]) == ([103, 104], "0")
