"""Frames recorded between Java programs: ours must read every one, and write the same bytes again.

``tests/golden/frames-*.jsonl`` holds one frame per line, of RocketMQ 4.9 and 5.5. Frames that say "hand-made request"
were built by a script (with blanks in their JSON, with fields missing): those need only decode to an equal command.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.protocol_registry import (
    REPLY_BODIES,
    REPLY_HEADERS,
    REQUEST_BODIES,
    REQUEST_HEADERS,
)

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.messages.record import decode_records
from cometmq.model.topic import DataVersion, TopicConfig, TopicQueues
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.admin import decode_timer_checkpoint, encode_timer_checkpoint
from cometmq.protocol.bodies.register import (
    RegisterBrokerBody,
    decode_register_body,
    encode_register_body,
)
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import BINARY, Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.frame import FrameDecoder, decode_bytes, encode_bytes

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ("4.9", "5.5")

STORED = {ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE}
RECORD_BODIES = {
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.QUERY_MESSAGE,
    RequestCode.VIEW_MESSAGE_BY_ID,
    RequestCode.POP_MESSAGE,
    RequestCode.PEEK_MESSAGE,
}
TEXT_BODIES = {
    RequestCode.UPDATE_BROKER_CONFIG,
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.UPDATE_NAMESRV_CONFIG,
    RequestCode.GET_NAMESRV_CONFIG,
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
}
MESSAGE_BODIES = {
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
}
SIGNED_OR_SHARED = {"AccessKey", "Signature", "SecurityToken", "ReqT"}


class Sample(NamedTuple):
    name: str
    sender: str
    is_request: bool
    request_code: int
    frame: bytes
    decoded: dict[str, Any]

    @property
    def is_hand_made(self) -> bool:
        return self.sender == "hand-made request"


def samples(version: str) -> Iterator[Sample]:
    with (GOLDEN / f"frames-{version}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            yield Sample(
                f"{raw['pair']} {raw['name']} ({raw['from']})",
                raw["from"],
                raw["direction"] == "request",
                raw["request_code"],
                bytes.fromhex(raw["frame_hex"]),
                raw["decoded"],
            )


def known_samples(version: str) -> Iterator[tuple[Sample, RequestCode, Command]]:
    for sample in samples(version):
        if sample.request_code in set(RequestCode):
            yield sample, RequestCode(sample.request_code), decode_bytes(sample.frame)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_frame_decodes_to_what_was_recorded(version: str) -> None:
    count = 0
    for sample in samples(version):
        command, decoded = decode_bytes(sample.frame), sample.decoded
        assert command.flag == decoded["flag"], sample.name
        assert command.opaque == decoded["opaque"], sample.name
        assert command.version == decoded["version"], sample.name
        assert command.ext == decoded["extFields"], sample.name
        # The recording names the language in a JSON header and numbers it in a binary one; it cut long remarks.
        assert command.language == ("JAVA" if decoded["language"] == 0 else decoded["language"])
        assert (command.remark or "").startswith(decoded.get("remark") or ""), sample.name
        assert command.is_response == (not sample.is_request), sample.name
        assert len(command.body) == decoded.get("body", {"len": 0})["len"], sample.name
        count += 1
    assert count > 400


@pytest.mark.parametrize("version", VERSIONS)
def test_every_java_frame_encodes_back_to_the_same_bytes(version: str) -> None:
    for sample in samples(version):
        command = decode_bytes(sample.frame)
        encoded = encode_bytes(command)
        if sample.is_hand_made:
            assert decode_bytes(encoded) == command, sample.name
        else:
            assert encoded == sample.frame, sample.name


@pytest.mark.parametrize("version", VERSIONS)
def test_every_command_survives_the_other_header_encoding(version: str) -> None:
    for sample in samples(version):
        command = decode_bytes(sample.frame)
        if command.code > 0x7FFF or command.remark == "" or command.ext == {}:
            continue  # what a binary header cannot tell from its absence, or cannot hold at all
        command.encoding ^= BINARY
        assert decode_bytes(encode_bytes(command)) == command, sample.name


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1460])
def test_the_whole_recording_decodes_as_one_stream(chunk_bytes: int) -> None:
    frames = [sample.frame for sample in samples("4.9")]
    stream = b"".join(frames)
    decoder = FrameDecoder()
    commands = [
        command
        for at in range(0, len(stream), chunk_bytes)
        for command in decoder.feed(stream[at : at + chunk_bytes])
    ]
    assert commands == [decode_bytes(frame) for frame in frames]
    assert decoder.pending_bytes == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_typed_headers_of_java_requests_round_trip(version: str) -> None:
    for sample, code, command in known_samples(version):
        if not sample.is_request or sample.is_hand_made:
            continue
        wanted = {k: v for k, v in (command.ext or {}).items() if k not in SIGNED_OR_SHARED}
        header_class = REQUEST_HEADERS.get(code)
        if header_class is None:
            assert not wanted, sample.name
        else:
            assert encode_fields(decode_fields(header_class, command.ext)) == wanted, sample.name


@pytest.mark.parametrize("version", VERSIONS)
def test_typed_headers_of_replies_round_trip(version: str) -> None:
    for sample, code, command in known_samples(version):
        if sample.is_request or not command.ext:
            continue
        header_class = REPLY_HEADERS[code]
        try:
            header = decode_fields(header_class, command.ext)
        except RemoteProtocolError:
            # A refused send carries region and trace switch, but no position.
            assert command.code not in STORED, sample.name
            assert set(command.ext) <= {"MSG_REGION", "TRACE_ON"}, sample.name
        else:
            assert encode_fields(header) == command.ext, sample.name


@pytest.mark.parametrize("version", VERSIONS)
def test_hand_made_requests_decode_or_are_refused_by_name(version: str) -> None:
    for sample, code, command in known_samples(version):
        if not (sample.is_request and sample.is_hand_made and code in REQUEST_HEADERS):
            continue
        header_class = REQUEST_HEADERS[code]
        ext = command.ext or {}
        required = {
            field.encode_name for field in msgspec.structs.fields(header_class) if field.required
        }
        if not required <= set(ext) or ext.get("e") == "abc":
            with pytest.raises(RemoteProtocolError, match=header_class.__name__):
                decode_fields(header_class, ext)
            continue
        encoded = encode_fields(decode_fields(header_class, ext))
        assert {key: encoded[key] for key in ext if key in encoded} == {
            key: value for key, value in ext.items() if key in encoded
        }, sample.name


@pytest.mark.parametrize("version", VERSIONS)
def test_typed_bodies_round_trip(version: str) -> None:
    count = 0
    for sample, code, command in known_samples(version):
        body = bytes(command.body)
        body_type = (REQUEST_BODIES if sample.is_request else REPLY_BODIES).get(code)
        if body_type is None or not body.startswith((b"{", b"[")) or body == b"{}":
            continue
        typed = fastjson.decode(body, body_type, what=sample.name)
        if code == RequestCode.GET_ROUTEINFO_BY_TOPIC and b'"brokerAddrs":{"' in body:
            encoded = fastjson.dumps_standard(typed)
        else:
            encoded = fastjson.dumps(typed)
        assert fastjson.decode(encoded, body_type) == typed, sample.name
        if not sample.is_hand_made and code != RequestCode.GET_COLD_DATA_FLOW_CTR_INFO:
            # Zero is how "no state version" reads everywhere, so we do not write it.
            assert encoded == _without_state(body), sample.name
        count += 1
    assert count > 60


@pytest.mark.parametrize("version", VERSIONS)
def test_every_body_is_of_a_known_kind(version: str) -> None:
    for sample, code, command in known_samples(version):
        body = bytes(command.body)
        body_type = (REQUEST_BODIES if sample.is_request else REPLY_BODIES).get(code)
        if not body or sample.is_hand_made or body_type is not None:
            continue
        if code in RECORD_BODIES:
            assert decode_records(body), sample.name
        elif code == RequestCode.GET_TIMER_CHECK_POINT:
            assert encode_timer_checkpoint(decode_timer_checkpoint(body)) == body
        else:
            assert code in TEXT_BODIES | MESSAGE_BODIES, sample.name


KEPT_OF_A_TOPIC = TopicQueues.__struct_fields__


def _unpacked(body: bytes) -> RegisterBrokerBody:
    """All of a compressed registration, where the name server passes over attributes and mappings."""
    plain = io.BytesIO(zlib.decompress(body))

    def number() -> int:
        return int.from_bytes(plain.read(4), "big")

    def text() -> str:
        return plain.read(number()).decode()

    version = msgspec.json.decode(text(), type=DataVersion)
    configs: dict[str, TopicConfig] = {}
    for _ in range(number()):
        name, read, write, perm, kind, *attributes = text().split(" ", 5)
        configs[name] = TopicConfig(
            topic_name=name,
            read_queue_nums=int(read),
            write_queue_nums=int(write),
            perm=int(perm),
            topic_filter_type=kind,
            attributes=json.loads(attributes[0]) if attributes else None,
        )
    filter_servers = json.loads(text())
    mappings = [fastjson.loads(text()) for _ in range(number())]
    assert plain.read() == b""
    table = TopicConfigTable(
        topic_config_table=configs,
        data_version=version,
        topic_queue_mapping_info_map={one["topic"]: one for one in mappings},
    )
    return RegisterBrokerBody(topics=table, filter_server_list=filter_servers)


def _without_state(body: bytes) -> bytes:
    return body.replace(b'"stateVersion":0,', b"")


@pytest.mark.parametrize("version", VERSIONS)
def test_registrations_round_trip_in_both_forms(version: str) -> None:
    seen = set()
    for sample, code, command in known_samples(version):
        if code != RequestCode.REGISTER_BROKER or not sample.is_request or sample.is_hand_made:
            continue
        body = bytes(command.body)
        is_compressed = body.startswith(b"\x78")
        seen.add(is_compressed)
        claimed = (command.ext or {})["compressed"] == "true"
        whole = _unpacked(body) if is_compressed else RegisterBrokerBody.decode(body)
        assert whole.topics.topic_config_table, sample.name
        again = encode_register_body(whole, compressed=is_compressed, version=command.version)
        assert _unpacked(again) == whole if is_compressed else again == _without_state(body)
        if version == "4.9":
            assert again == body, sample.name
        read = decode_register_body(body, compressed=claimed, version=command.version)
        assert read.topics.data_version == whole.topics.data_version
        assert read.filter_server_list == whole.filter_server_list
        assert read.topics.topic_config_table == {
            name: TopicQueues(**{field: getattr(topic, field) for field in KEPT_OF_A_TOPIC})
            for name, topic in whole.topics.topic_config_table.items()
        }
    assert seen == {True, False}


def test_every_request_code_of_the_recordings_is_known_or_refused_by_java_too() -> None:
    unknown = {
        sample.request_code
        for version in VERSIONS
        for sample in samples(version)
        if sample.request_code not in set(RequestCode)
    }
    assert unknown == {3, 13, 47, 301, 9999}
