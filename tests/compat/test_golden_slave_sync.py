"""Metadata sync as recorded between Java brokers: our slave takes what their master answers, and the reverse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.protocol.frame import FrameDecoder
from cometmq.testing.memory_broker import MemoryBroker

GOLDEN = Path(__file__).parents[1] / "golden" / "ha"
VERSIONS = ("4.9.7", "5.5.0")


def frames(version: str) -> dict[int, dict[str, Command]]:
    """By request code: the request and the response."""
    found: dict[int, dict[str, Command]] = {}
    for line in (GOLDEN / f"slave-sync-{version}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        (command,) = FrameDecoder(1 << 24).feed(bytes.fromhex(entry["frame_hex"]))
        found.setdefault(entry["request_code"], {})[entry["direction"]] = command
    return found


class JavaMaster:
    """Answers as recorded; what was not recorded it does not know."""

    def __init__(self, version: str) -> None:
        self._frames = frames(version)

    async def call(self, address: str, command: Command, timeout: float = 3.0) -> Command:
        if command.code == 28:
            return command.reply(body=b'{"table":{"commitLogMaxOffset":"0"}}')
        pair = self._frames.get(command.code)
        if pair is None:
            return command.reply(3, f" request type {command.code} not supported")
        return pair["response"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_our_slave_takes_the_answers_of_a_java_master(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    slave = MemoryBroker({"brokerRole": "SLAVE", "brokerId": "1"}, is_master=False)

    one = MetadataSync(
        core=slave.core,
        delays=slave.rooms.schedule,
        timers=slave.rooms.timer.timed,
        sinks=slave.rooms.sink.keeper,
        client=JavaMaster(version),
    )
    one.follow("java:10911")
    await one.sync_now()
    await one.sync_now()
    assert "not synced" not in caplog.text
    assert caplog.text.count("topics synced") <= 1
    bodies = {
        code: fastjson.loads(bytes(frames(version)[code]["response"].body)) for code in (21, 201)
    }
    assert set(slave.core.topics.names()) == bodies[21]["topicConfigTable"].keys()
    assert set(slave.core.groups.names()) == bodies[201]["subscriptionGroupTable"].keys()
    for table, code in ((slave.core.topics, 21), (slave.core.groups, 201)):
        told = bodies[code]["dataVersion"]
        assert table.version.counter == told["counter"]
        assert table.version.timestamp == told["timestamp"]
        assert table.version.state_version == told.get("stateVersion", 0)
        # Told on to a slave of ours with every field that Java's master told.
        rows = fastjson.loads(table.rows_of(table.names()))
        assert rows == bodies[code][table.TABLE_KEY]


def keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dispatch_at", ["main", "vip"])
def test_our_master_answers_java_slaves(version: str, dispatch_at: str) -> None:
    master = MemoryBroker()
    ask: Callable[[Command], list[Command]] = master.dispatch
    if dispatch_at == "vip":
        master.ports.main = master.ports.vip
    for code, pair in frames(version).items():
        (reply,) = ask(pair["request"])
        java = pair["response"]
        assert (reply.code, reply.opaque) == (0, java.opaque), code
        if code == 60:
            assert len(reply.body) == len(java.body) == 56
            continue
        ours = fastjson.loads(bytes(reply.body))
        theirs = fastjson.loads(bytes(java.body))
        # Static topics, and what 5.x adds to offsets, are nothing that a slave needs.
        optional = {"topicQueueMappingDetailMap", "topicQueueMappingInfoMap"}
        optional |= {"mappingDataVersion", "groupTopicMap", "pullOffsetTable", "dataVersion"}
        assert keys(theirs) - optional <= keys(ours), code
        for table in ("topicConfigTable", "subscriptionGroupTable"):
            if table in theirs:
                assert ours["dataVersion"].keys() <= {"counter", "timestamp", "stateVersion"}
                (entry, *_), (java_entry, *_) = ours[table].values(), theirs[table].values()
                required = keys(java_entry) if version == "4.9.7" else {"perm"} & keys(java_entry)
                assert required <= keys(entry), code
        if version == "5.5.0" and code in (21, 201):
            (total,) = (
                value for key, value in (reply.ext or {}).items() if key.startswith("total")
            )
            table = "topicConfigTable" if code == 21 else "subscriptionGroupTable"
            assert int(total) == len(ours[table])
