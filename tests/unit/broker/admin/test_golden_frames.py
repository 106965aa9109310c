"""Requests that Java's tools sent to Java brokers: ours gives the same answer, field for field.

Figures differ, so successful bodies are compared by their shape: which keys stand where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cometmq.base.properties_file import parse_properties
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.protocol.frame import FrameDecoder

GOLDEN = Path(__file__).parents[3] / "golden"

CODES_49 = {
    *(17, 21, 26, 28, 43, 45, 200, 201, 202, 203, 204, 207, 208, 215, 222, 223, 300, 303, 305)
}
CODES_49 |= {306, 307, 308, 309, 314, 315, 316, 317, 321, 328, 329}
CODES_55 = {18, 222, 225, 343, 345, 351, 352, 353, 401, 402}

# Their bodies are keyed by the names of topics and groups at all levels.
NAMED_ENTRIES = {28, 43, 317, 402}

# Keys that only newer tools read; a 4.9 broker does not write them.
NEWS = {"topicPutTps", "forbiddenTable", "pullOffset"}

# A slave of 5.x fails without a version of the offsets; one of 4.9 does not look at it.
OFFSETS_OF_49 = (43, "4.9")

# Different on purpose: RocketMQ fails with a null pointer, or POP is wanted.
SKIPPED = {"49-0044", "49-0171", "55-0482", "55-0483"}


def pairs(version: str, codes: set[int]) -> Iterator[tuple[str, bytes, bytes]]:
    lines = (GOLDEN / f"frames-{version}.jsonl").read_text().splitlines()
    found: dict[str, dict[str, bytes]] = {}
    for entry in map(json.loads, lines):
        is_to_broker = "broker" in (
            entry["to"] if entry["direction"] == "request" else entry["from"]
        )
        if entry["request_code"] in codes and is_to_broker:
            pair = found.setdefault(entry["pair"], {})
            pair[entry["direction"]] = bytes.fromhex(entry["frame_hex"])
    for name, pair in found.items():
        if len(pair) == 2 and name not in SKIPPED:
            yield name, pair["request"], pair["response"]


def decoded(frame: bytes) -> Command:
    (command,) = FrameDecoder(1 << 24).feed(frame)
    return command


def shape(value: Any) -> Any:
    """Keys all the way down but news; of a map keyed by names or queues only what its entries look like."""
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if not isinstance(value, dict):
        return type(value).__name__
    if value and all(isinstance(item, dict) for item in value.values()) and len(value) > 2:
        return {"*": shape(next(iter(value.values())))}
    return {key: shape(item) for key, item in value.items() if key not in NEWS}


def populate(rig: Any) -> None:
    """The state of the recorded brokers, as far as the requests look at it."""
    for topic in ("HoldTopic", "T49", "T55", "AdmTopic"):
        rig.topic(topic)
        rig.add(topic, range(4), *range(1_794_780_000_000, 1_794_780_000_007))
    rig.stats.topic_put("T49")
    rig.delay(1, 3)
    groups = ["CG_hold", *(f"g{n}" for n in range(3))]
    rig.ask(225, None, {"groupConfigList": [{"groupName": group} for group in groups]})
    for group in ("CG_hold", "BC_hold", "ORD_hold", "PULL_T49"):
        topic = "T49" if group == "PULL_T49" else "HoldTopic"
        for queue_id in range(4):
            rig.offsets.commit(group, topic, queue_id, 3)
    status = fastjson.dumps({"consumerTable": {}, "messageQueueTable": {}})
    clients = (("CG_hold", "ihold"), ("BC_hold", "iholdb"), ("ORD_hold", "iholdo"))
    for port, (group, client) in enumerate(clients, 40001):
        peer = rig.consumer(
            group,
            f"192.0.2.2@{client}",
            "HoldTopic",
            model="BROADCASTING",
            port=port,
        )
        peer.answer = lambda request: request.reply(0, "not set any response code", body=status)
    for group in ("PG_hold", "CLIENT_INNER_PRODUCER"):
        rig.producer(group, "192.0.2.2@iPG_hold")


@pytest.mark.parametrize(
    ("version", "request_frame", "reply_frame"),
    [
        pytest.param(version, request, reply, id=name)
        for version, codes in (("4.9", CODES_49), ("5.5", CODES_55))
        for name, request, reply in pairs(version, codes)
    ],
)
def test_the_answer_is_javas(
    make_rig: Callable[..., Any], version: str, request_frame: bytes, reply_frame: bytes
) -> None:
    name = version.replace(".", "")
    rig = make_rig(
        brokerName=f"b{name}",
        brokerClusterName=f"C{name}",
        useServerSideResetOffset="false" if version == "4.9" else "true",
    )
    populate(rig)
    request, expected = decoded(request_frame), decoded(reply_frame)

    (reply,) = rig.dispatch(request)

    assert (reply.code, reply.remark) == (expected.code, expected.remark)
    assert reply.opaque == expected.opaque
    assert set(expected.ext or ()) <= set(reply.ext or ())
    if request.code == 26:
        return
    if request.code in (307, 309, 223) or not expected.body:
        assert bool(reply.body) == bool(expected.body)
        return
    ours = fastjson.loads(bytes(reply.body))
    theirs = fastjson.loads(bytes(expected.body))
    if request.code in NAMED_ENTRIES:
        news = {"dataVersion"} if (request.code, version) == OFFSETS_OF_49 else set()
        assert set(ours) - news == set(theirs)
    elif version == "4.9":
        assert shape({key: ours[key] for key in ours if key not in NEWS}) == shape(theirs)
    else:
        # The fields a 5.x broker always writes may be left out at their default.
        assert set(ours) <= set(theirs)


def test_runtime_info_has_every_key_of_both_versions(rig: Any) -> None:
    ours = set(rig.json(28)["table"])
    for version in ("4.9", "5.5"):
        for _, _, reply in pairs(version, {28}):
            theirs = set(fastjson.loads(bytes(decoded(reply).body))["table"])
            specific = {
                key
                for key in theirs
                if key.startswith(("commitLogDiskRatio_", "scheduleMessageOffset_"))
            }
            assert theirs - specific <= ours


def test_the_config_of_a_recorded_broker_can_be_loaded() -> None:
    for version in ("4.9", "5.5"):
        for _, _, reply in pairs(version, {26}):
            values = parse_properties(bytes(decoded(reply).body).decode())
            config, ignored = load_broker_config(values)
            assert config.identity.broker_name == values["brokerName"]
            assert set(ignored) < set(values)
