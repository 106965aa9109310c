"""Everything that reads bytes of somebody else, as a table: what is right for it, and which errors it may answer with.

Each decoder gets what ``mutator`` makes of its samples. It may refuse that with its own kinds of error; anything else
is a fault. ``in_process`` runs them.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import pkgutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.hostile.mutator import Mutator

from cometmq.access.plain import plain_files
from cometmq.access.plain.addresses import matcher
from cometmq.base.errors import CometError, ConfigError, ProtocolError, RemoteProtocolError
from cometmq.base.properties_file import decode_file
from cometmq.base.properties_file import parse_properties as parse_file
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.replication.autoswitch.switch_wire import MasterFrames, SlaveFrames
from cometmq.broker.replication.ha_wire import ReportReader, TransferReader
from cometmq.client.aio.bulk.raw_pull import read_bulk_pull, read_pull
from cometmq.controller.controller_config import SCHEMA as CONTROLLER
from cometmq.model.messages.batch import decode_columns, encode_batch
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.properties import PropertyText, parse_properties, property_of
from cometmq.model.messages.received_message import decode_messages
from cometmq.model.messages.record import BadRecord, decode_records
from cometmq.model.sql92.errors import BadExpression
from cometmq.model.sql92.selector import Selector
from cometmq.model.subscription import build_subscription
from cometmq.namesrv.namesrv_config import SCHEMA as NAMESRV
from cometmq.protocol import bodies, headers
from cometmq.protocol.bodies.auth import decode_acls, decode_users
from cometmq.protocol.bodies.group import decode_group_config
from cometmq.protocol.bodies.heartbeat import decode_heartbeat
from cometmq.protocol.bodies.register import decode_register_body
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.bodies.topic import decode_data_version, decode_topic_config
from cometmq.protocol.command import BINARY, JSON, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.frame import FrameDecoder, decode_bytes, encode_bytes
from cometmq.protocol.json_body import JsonBody

GOLDEN: Final = Path(__file__).parents[1] / "golden"
CONF: Final = Path(__file__).parents[2] / "conf"


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder. ``refuses``: the errors that it may answer with."""

    name: str
    read: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]
    samples: Sequence[bytes]
    words: Sequence[bytes] = ()
    turn: int = 64
    """Inputs until the next decoder has its turn; fewer where one takes longer."""
    mutator: Mutator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mutator", Mutator(self.samples, self.words))


def targets() -> list[Target]:
    """All of them; those of Spark if its packages are here."""
    found = [
        Target("frames", _frames, (ProtocolError,), _frame_samples(), _JSON_WORDS),
        Target("headers", _headers, (ProtocolError,), _frame_samples(), _FIELD_WORDS),
        Target("bodies", _bodies, (ProtocolError,), _body_samples(), _JSON_WORDS, 16),
        Target("registration", _registration, (ProtocolError,), _register_samples()),
        Target("properties", _properties, (), _PROPERTY_SAMPLES, (b"\x01", b"\x02", b"TAGS\x01")),
        Target("batch", _batch, (ProtocolError,), _BATCH_SAMPLES),
        Target("bulk pull", _bulk_pull, (CometError,), _bulk_samples(), _FIELD_WORDS),
        Target("records", _records, (BadRecord, ProtocolError), record_samples()),
        Target("compression", _compression, (ProtocolError,), _PACKED_SAMPLES),
        Target("sql92", _sql92, (BadExpression,), _SQL_SAMPLES, _SQL_WORDS),
        Target("tags", _tags, (CometError,), (b"*", b"a||b || c", b"||"), (b"||", b"*", b" ")),
        Target("ha wire", _ha_wire, (RemoteProtocolError,), _ha_samples(), (), 8),
        Target("plain_acl.yml", _accounts, (ConfigError,), _YAML_SAMPLES, _YAML_WORDS, 8),
        Target("configuration", _configuration, (ConfigError,), _conf_samples(), _CONF_WORDS, 8),
    ]
    if importlib.util.find_spec("pyarrow") is not None:
        found.append(Target("spark", _spark, _spark_errors(), record_samples(), (), 2))
    return found


_JSON_WORDS: Final = (
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"true", b"1e999", b"-1", b"NaN"),
    *(b'{"a":', b"[[", b"\\u0000", b"\\ud800", b'"$ref":"$"', b"99999999999999999999", b"\xff"),
    *(b"'a'", b"{1:2}", b'"code":', b'"extFields":', b'"opaque":', b'"flag":'),
)
_FIELD_WORDS: Final = (*_JSON_WORDS, b"9223372036854775808", b"\xe0\xb9\x91", b"-0", b" 1", b"1_0")
_SQL_WORDS: Final = (
    *(b"AND ", b"OR ", b"NOT ", b"(", b")", b"= ", b"<> ", b">= ", b"IS NULL ", b"IN ('a') "),
    *(b"BETWEEN 1 AND 2 ", b"CONTAINS 'a' ", b"'", b"''", b"TRUE ", b"-", b"+", b"1.5", b"1E400"),
    *(b"9223372036854775808", b"a ", b"\xc3\xa9", b"STARTSWITH ", b"0x1", b"1l", b"."),
)
_YAML_WORDS: Final = (
    *(b"&a ", b"*a ", b"- ", b": ", b"!!python/object:os.system ", b"<<: *a", b"? ", b"| ", b"> "),
    *(b"[", b"]", b"{", b"}", b"'", b'"', b"\t", b"---\n", b"...\n", b"accounts:\n", b"0x7f", b"~"),
    *(b"2001-01-01", b"PUB|SUB", b"DENY", b"1e400", b"admin: true\n", b"10.0.0.*", b"{1,2}", b"::"),
)
_CONF_WORDS: Final = (
    *(b"=", b":", b"\n", b"\\\n", b"\\u0041", b"\\u", b"#", b"!", b" ", b"true", b"-1", b"1e3"),
    *(
        b"listenPort=",
        b"brokerIP1=",
        b"aclEnable=true",
        b"brokerRole=SLAVE",
        b"99999999999999999999",
    ),
)


def _frames(data: bytes) -> None:
    # In two pieces as well: what is kept of the first must not matter.
    for cut in (len(data), len(data) // 2):
        decoder = FrameDecoder()
        for piece in (data[:cut], data[cut:]):
            for command in decoder.feed(piece):
                assert isinstance(command, Command)


def _headers(data: bytes) -> None:
    """The fields of one request read as those of others."""
    command = decode_bytes(data)
    classes = _header_classes()

    def read_as(header: type[Any]) -> Callable[[bytes], object]:
        return lambda _: decode_fields(header, command.ext)

    chosen = [classes[(len(data) + 17 * number) % len(classes)] for number in range(3)]
    _one_of(*map(read_as, chosen))(data)


def _bodies(data: bytes) -> None:
    readers = _body_readers()
    first = zlib.crc32(data)
    _one_of(*(readers[(first + number) % len(readers)] for number in range(3)))(data)


def _one_of(*readers: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Reads with each, and refuses what all of them refuse."""

    def read(data: bytes) -> None:
        refusals = []
        for reader in readers:
            try:
                reader(data)
            except CometError as refusal:
                refusals.append(refusal)
        if len(refusals) == len(readers):
            raise refusals[0]

    return read


def _registration(data: bytes) -> None:
    decode_register_body(data, compressed=len(data) % 2 == 0, version=479, topics_max=1000)


def _properties(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    pairs = parse_properties(text)
    for name in ("TAGS", "UNIQ_KEY", ""):
        assert PropertyText(text).get(name) == property_of(text, name)
    assert all(isinstance(value, str) for value in pairs.values())


def _batch(data: bytes) -> None:
    flags, contents, texts = decode_columns(data, 1000)
    assert len(flags) == len(contents) == len(texts) <= 1000


def _records(data: bytes) -> None:
    decode_records(data, check_crc=False)
    for message in decode_messages(data, "b"):
        message.properties  # noqa: B018 - read when asked for
        message.born_host  # noqa: B018
        repr(message)


def _bulk_pull(data: bytes) -> None:
    """What readers of Spark get, who decode the records themselves."""
    reply = decode_bytes(data)
    _one_of(
        lambda _: read_bulk_pull(reply, "a"),
        lambda _: read_bulk_pull(reply, "a", sizes_only=True),
        lambda _: read_pull(reply, "a"),
    )(data)


def _compression(data: bytes) -> None:
    def unpack_as(kind: int) -> Callable[[bytes], object]:
        return lambda packed: decompress(packed, 1 | kind, 1 << 20)

    _one_of(*map(unpack_as, (0x100, 0x200, 0x300, 0)))(data)


def _sql92(data: bytes) -> None:
    selector = Selector(data.decode("utf-8", "replace"))
    for properties in ({}, {"a": "1", "b": "x"}, {"a": "1e999", "b": "-0", "c": ""}):
        selector.matches(properties)


def _tags(data: bytes) -> None:
    build_subscription("T", data.decode("utf-8", "replace"), tags_max=1000)


def _ha_wire(data: bytes) -> None:
    wires = (ReportReader().feed, TransferReader().feed, SlaveFrames().feed, _read_master_frames)
    _one_of(*wires)(data)


def _read_master_frames(data: bytes) -> None:
    frames = MasterFrames()
    room = frames.room()
    room[: len(data)] = data
    frames.received(len(data))


def _accounts(data: bytes) -> None:
    content = plain_files.parse_content(data, Path("plain_acl.yml"))
    plain_files._accounts(content, "plain_acl.yml")
    plain_files._version(content, 0)
    for text in plain_files._white(content):
        matcher(text)("10.0.0.1")


def _configuration(data: bytes) -> None:
    values = parse_file(decode_file(data))
    # Each with its own settings; a key of another server is an error of its own.
    (load_broker_config, NAMESRV.load, CONTROLLER.load)[len(data) % 3](values)


def _spark(data: bytes) -> None:
    import numpy as np

    from cometmq.spark.columns.decode import decode
    from cometmq.spark.columns.schema import COLUMNS

    half = len(data) // 2
    # As the replies to bulk pulls have them: sizes that somebody else wrote.
    for sizes in (None, [len(data)], [half, len(data) - half], [-4, len(data) + 4]):
        try:
            decode(data, None if sizes is None else np.array(sizes), COLUMNS, "b")
        except _spark_errors():
            continue


def _spark_errors() -> tuple[type[Exception], ...]:
    # Not from ``frames``: the first input is not to pay for the import.
    from cometmq.spark.columns.decode import UndecodableRecord

    return (UndecodableRecord, ProtocolError)


# Samples.


@cache
def _golden_frames() -> tuple[bytes, ...]:
    found: dict[bytes, None] = {}
    files = (
        *sorted(GOLDEN.glob("frames-*.jsonl")),
        *sorted((GOLDEN / "ha").glob("controller-*.jsonl")),
        *sorted((GOLDEN / "ha").glob("slave-sync-*.jsonl")),
    )
    for file in files:
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            if "frame_hex" in entry:
                found[bytes.fromhex(entry["frame_hex"])] = None
    assert found
    return tuple(found)


@cache
def golden_replies() -> tuple[Command, ...]:
    """What servers of RocketMQ answered."""
    commands = [_command(frame) for frame in _golden_frames()]
    return tuple(command for command in commands if command is not None and command.flag & 1)


def _command(frame: bytes) -> Command | None:
    try:
        return decode_bytes(frame)
    except ProtocolError:
        return None


@cache
def _frame_samples() -> tuple[bytes, ...]:
    """Both encodings of each header."""
    found: dict[bytes, None] = {}
    for frame in _golden_frames():
        found[frame] = None
        command = _command(frame)
        # Codes of the binary encoding have 16 bits.
        if command is not None and command.code < 2**15:
            command.encoding = BINARY if command.encoding == JSON else JSON
            found[encode_bytes(command)] = None
    return tuple(frame for frame in found if len(frame) < 8192)


@cache
def _body_samples() -> tuple[bytes, ...]:
    found = {bytes(command.body): None for command in map(_command, _golden_frames()) if command}
    return tuple(body for body in found if body[:1] in (b"{", b"[") and len(body) < 8192)


@cache
def _register_samples() -> tuple[bytes, ...]:
    commands = [_command(frame) for frame in _golden_frames()]
    plain = [
        bytes(one.body) for one in commands if one is not None and one.code == 103 and one.body
    ]
    return (*plain, *(zlib.compress(body) for body in plain), b"{}")


@cache
def record_samples() -> tuple[bytes, ...]:
    """The bodies of replies to pulls."""
    found: dict[bytes, None] = {}
    for reply in golden_replies():
        body = bytes(reply.body)
        try:
            if body and decode_records(body):
                found[body] = None
        except (BadRecord, ProtocolError):
            continue
    assert found
    return tuple(found)


@cache
def _bulk_samples() -> tuple[bytes, ...]:
    ext = {"nextBeginOffset": "9", "minOffset": "0", "maxOffset": "9", "status": "0", "count": "1"}
    records = record_samples()[0]
    bodies = (records, records + len(records).to_bytes(4, "big"), b"")
    return tuple(encode_bytes(Command(0, ext, body, 1, 7)) for body in bodies)


@cache
def _ha_samples() -> tuple[bytes, ...]:
    found: dict[bytes, None] = {}
    for file in (*GOLDEN.glob("ha/default-*.jsonl"), *GOLDEN.glob("ha/autoswitch-*.jsonl")):
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            if "hex" in entry:
                found[bytes.fromhex(entry["hex"])] = None
    return tuple(found)


@cache
def _conf_samples() -> tuple[bytes, ...]:
    files = [file.read_bytes() for file in CONF.rglob("*.conf")]
    return (*files, b"brokerRole=SYNC_MASTER\nflushDiskType = ASYNC_FLUSH\nlistenPort: 10911\n")


_PROPERTY_SAMPLES: Final = (
    b"UNIQ_KEY\x01K1\x02WAIT\x01true\x02TAGS\x01A",
    b"TAGS\x01\x02",
    b"",
    "键\x01值\x02".encode(),
)
_BATCH_SAMPLES: Final = (
    encode_batch([(0, b"one", b"TAGS\x01A")]),
    encode_batch([(number, bytes(number), b"a\x01b") for number in range(20)]),
    encode_batch([(0, b"same", b"same")] * 20),
)
_PACKED_SAMPLES: Final = (
    zlib.compress(b"hello" * 100),
    bytes.fromhex("28b52ffd0458290000") + b"hello" + bytes(4),
    bytes.fromhex("04224d186040820500008068656c6c6f00000000"),
)
_SQL_SAMPLES: Final = (
    b"a > 5 AND (b = 'x' OR NOT c IS NULL)",
    b"a BETWEEN 1 AND 10 OR b IN ('x', 'y', 'z')",
    b"NOT (a <> -5.5 AND b CONTAINS 'q''uote') OR TRUE",
    b"b STARTSWITH 'a' AND b NOT ENDSWITH 'z' OR a = 1E10",
)
_YAML_SAMPLES: Final = (
    b"globalWhiteRemoteAddresses:\n- 10.10.103.*\n- 192.168.0.{1,2}\n- '::1'\n\n"
    b"accounts:\n- accessKey: RocketMQ\n  secretKey: 12345678\n  whiteRemoteAddress:\n  admin: false\n"
    b"  defaultTopicPerm: DENY\n  defaultGroupPerm: SUB\n  topicPerms:\n  - topicA=DENY\n  - topicB=PUB|SUB\n"
    b"  groupPerms:\n  - groupA=DENY\n- accessKey: rocketmq2\n  secretKey: 12345678\n"
    b"  whiteRemoteAddress: 192.168.1.*\n  admin: true\n",
    b"dataVersion:\n- counter: 3\n  timestamp: 1700000000000\naccounts: []\n",
)


@cache
def _header_classes() -> list[type[Any]]:
    return _classes(headers, msgspec.Struct)


@cache
def _body_readers() -> list[Callable[[bytes], object]]:
    readers: list[Callable[[bytes], object]] = [
        decode_acls,
        decode_data_version,
        decode_group_config,
        decode_heartbeat,
        decode_route,
        decode_topic_config,
        decode_users,
    ]
    return readers + [body.decode for body in _classes(bodies, JsonBody)]


def _classes(package: Any, base: type[Any]) -> list[type[Any]]:
    """The classes of all modules of a package, by name."""
    found: dict[str, type[Any]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        content = importlib.import_module(f"{package.__name__}.{module.name}")
        for name, value in inspect.getmembers(content, inspect.isclass):
            if (
                issubclass(value, base)
                and value is not base
                and value.__module__ == content.__name__
            ):
                found[f"{module.name}.{name}"] = value
    return [found[name] for name in sorted(found)]
