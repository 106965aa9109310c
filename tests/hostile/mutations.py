"""Frames that a hostile or broken peer might send: real requests with something wrong in them. No I/O.

Every frame follows from a seed and its number alone, so that any of them can be made again.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from cometmq.base.errors import LocalProtocolError
from cometmq.native.send_run import RUN
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import BINARY, FLAG_ONEWAY, FLAG_RESPONSE, JSON, Command
from cometmq.protocol.frame import decode_bytes, encode_bytes

GOLDEN: Final = Path(__file__).parents[1] / "golden"
CODES: Final = tuple(int(code) for code in RequestCode)

NAMES_COUNT: Final = 500
"""Different names that frames make up for topics and groups. Who may use a broker may fill its tables by admin
requests; that is no matter of this suite."""

LENGTHS: Final = (
    *(0, 1, 3, 4, 5, 7, 8, 255, 256, 65535),
    *(2**24 - 1, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1),
)
TEXTS: Final = (
    *("", " ", "-1", "0", "1", "2147483647", "2147483648", "-2147483649", "9223372036854775807"),
    *("9223372036854775808", "1e999", "NaN", "null", "true", "TRUE", "0x10", "١٢", "\x00", "\n"),
    *(
        "a\u2028b=c",
        "\x85",
        "\x1b[2J",
        "%RETRY%",
        "%DLQ%",
        "%RETRY%%RETRY%x",
        "../../etc/passwd",
        "/",
    ),
    *(
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "*",
        "a || b",
        "\ud83d",
        "😀" * 100,
    ),
    *(
        "a > 5 AND " * 50 + "TRUE",
        "(" * 500,
        "x" * 300,
        "x" * 40_000,
        "%s%n%d",
        "{}",
        "[]",
        "1|2|3",
    ),
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 1.5, 1e308, "", "x", "\ud800"),
    *([], {}, [[]], {"": None}, [None], {"a": {"b": {"c": []}}}, ["x"] * 100, "y" * 10_000),
)

_BODIES: Final = (
    *(b"\x00", b"null", b"[]", b"{}", b"[" * 10, b"[" * 5000, b'{"a":' * 10 + b"1" + b"}" * 10),
    *(b'{"a":' * 5000, b"{1:2,}", b"{" + b"1:2," * 1000 + b"}", b"{" + b"1:2," * 20_000 + b"}"),
)
_BOMBS: Final = tuple(
    zlib.compress(content)
    for content in (bytes(1000), bytes(1_000_000), b"1:2," * 100, b"{" + b"1:2," * 100_000)
)


class Mutated(NamedTuple):
    data: bytes
    kind: str
    ends_connection: bool
    """Whether the peer closes afterwards: a half frame is followed by nothing."""


def load_samples() -> list[bytes]:
    """The requests that programs of RocketMQ sent to each other."""
    found: dict[bytes, None] = {}
    for version in ("4.9", "5.5"):
        for line in (GOLDEN / f"frames-{version}.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["direction"] == "request":
                found[bytes.fromhex(entry["frame_hex"])] = None
    return list(found)


class Mutations:
    """Makes the frames of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._samples = load_samples()
        self._commands = [decode_bytes(sample) for sample in self._samples]

    def frame(self, number: int) -> Mutated:
        random = Random(self._seed << 40 | number)
        kind, make, ends = random.choices(_KINDS, _WEIGHTS)[0]
        index = random.randrange(len(self._samples))
        if make in _OF_BYTES:
            return Mutated(make(random, self._samples[index]), kind, ends)
        sample = self._commands[index]
        command = Command(
            sample.code,
            dict(sample.ext) if sample.ext is not None else None,
            bytes(sample.body),
            sample.flag & ~FLAG_RESPONSE,
            number & 0x7FFFFFFF,
            sample.remark,
            sample.language,
            sample.version,
            sample.encoding,
        )
        return Mutated(make(random, command), kind, ends)


# Whole requests that are right, or nearly.


def _as_it_is(random: Random, command: Command) -> bytes:
    return _encode(command)


def _other_encoding(random: Random, command: Command) -> bytes:
    command.encoding = BINARY if command.encoding == JSON else JSON
    return _encode(command)


def _other_code(random: Random, command: Command) -> bytes:
    known, any_number = random.choice(CODES), random.randrange(-32768, 32768)
    # The last is a number that servers use among themselves, and that no peer should know.
    command.code = random.choice((known, known, any_number, any_number, RUN))
    return _encode(command)


def _other_flag(random: Random, command: Command) -> bytes:
    command.flag = random.choice((FLAG_ONEWAY, FLAG_RESPONSE, 3, 4, -1, 2**31 - 1))
    command.opaque = random.choice((0, 1, -1, 2**31 - 1))
    return _encode(command)


def _fields(random: Random, command: Command) -> bytes:
    ext = command.ext or {}
    for _ in range(random.randint(1, 3)):
        key = random.choice(list(ext) or ["a"])
        what = random.randrange(4)
        if what == 0:
            ext.pop(key, None)
        elif what == 1:
            ext[key] = _text(random)
        elif what == 2:
            ext[_text(random)] = _text(random)
        else:
            ext[key] = ext.get(key, "") + _text(random)
    command.ext = ext
    if random.random() < 0.3:
        command.encoding = BINARY
    return _encode(command)


def _names(random: Random, command: Command) -> bytes:
    ext = command.ext or {}
    name = f"Made-{random.randrange(NAMES_COUNT)}"
    for key in ("topic", "b", "consumerGroup", "producerGroup", "a", "group"):
        if key in ext:
            ext[key] = name
    command.ext = ext
    command.body = bytes(command.body).replace(b"T49", name.encode()).replace(b"T55", name.encode())
    return _encode(command)


def _no_fields(random: Random, command: Command) -> bytes:
    command.ext = random.choice((None, {}))
    return _encode(command)


# Bodies.


def _body(random: Random, command: Command) -> bytes:
    body = bytes(command.body)
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: b"",
        lambda: random.randbytes(random.randrange(1, 200)),
        lambda: _spoilt(random, body),
        lambda: body[: random.randrange(len(body) + 1)],
        lambda: body + body,
        lambda: b"\xff\xfe" + body,
        lambda: random.choice(_BODIES),
    )
    command.body = random.choice(makers)()
    return _encode(command)


def _json_body(random: Random, command: Command) -> bytes:
    try:
        content = json.loads(bytes(command.body))
    except ValueError:
        content = {"clientID": "c", "consumerDataSet": [], "producerDataSet": [{"groupName": "p"}]}
    command.body = _dump(_changed(random, content))
    return _encode(command)


def _compressed_body(random: Random, command: Command) -> bytes:
    body = bytes(command.body)
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: zlib.compress(body),
        lambda: zlib.compress(body)[:-3],
        lambda: _spoilt(random, zlib.compress(body)),
        lambda: random.choice(_BOMBS),
        lambda: b"\x28\xb5\x2f\xfd" + random.randbytes(20),
        lambda: b"\x04\x22\x4d\x18" + random.randbytes(20),
    )
    command.body = random.choice(makers)()
    command.ext = {**(command.ext or {}), "compressed": "true", "bodyCrc32": "0"}
    if "f" in command.ext:
        command.ext["f"] = random.choice(("1", "257", "513", "769", "3", "4095"))
    if "sysFlag" in command.ext:
        command.ext["sysFlag"] = random.choice(("1", "2", "6", "7", "15", "4095", "-1"))
    return _encode(command)


# Headers that no encoder writes.


def _json_header(random: Random, command: Command) -> bytes:
    header: dict[str, Any] = {
        "code": command.code,
        "language": command.language,
        "version": command.version,
        "opaque": command.opaque,
        "flag": command.flag,
        "extFields": command.ext,
        "serializeTypeCurrentRPC": "JSON",
    }
    text = _dump(_changed(random, header))
    if random.random() < 0.2:
        text = _spoilt(random, text)
    return _frame(text, bytes(command.body))


def _binary_header(random: Random, command: Command) -> bytes:
    command.encoding = BINARY
    frame = bytearray(_encode(command))
    header_bytes = int.from_bytes(frame[5:8], "big")
    for _ in range(random.randint(1, 3)):
        at = 8 + random.randrange(max(header_bytes, 1))
        size = random.choice((1, 2, 4))
        value = random.choice(LENGTHS) & ((1 << 8 * size) - 1)
        frame[at : at + size] = value.to_bytes(size, "big")
    return bytes(frame)


def _lengths(random: Random, frame: bytes) -> bytes:
    changed = bytearray(frame)
    at = random.choice((0, 4))
    value = random.choice(
        (
            random.choice(LENGTHS),
            max(0, int.from_bytes(frame[at : at + 4], "big") + random.randint(-9, 9)),
        )
    )
    struct.pack_into(">I", changed, at, value & 0xFFFFFFFF)
    return bytes(changed)


def _header_encoding(random: Random, frame: bytes) -> bytes:
    return frame[:4] + bytes((random.randrange(256),)) + frame[5:]


def _bits(random: Random, frame: bytes) -> bytes:
    return _spoilt(random, frame)


def _noise(random: Random, frame: bytes) -> bytes:
    return random.randbytes(random.randrange(1, 400))


def _half(random: Random, frame: bytes) -> bytes:
    return frame[: random.randrange(1, len(frame))]


_Make = Callable[[Random, Any], bytes]
_TABLE: Final[tuple[tuple[int, str, _Make, bool], ...]] = (
    (10, "as it is", _as_it_is, False),
    (10, "other encoding", _other_encoding, False),
    (10, "other code", _other_code, False),
    (5, "other flag", _other_flag, False),
    (30, "fields", _fields, False),
    (10, "names", _names, False),
    (3, "no fields", _no_fields, False),
    (15, "body", _body, False),
    (20, "json body", _json_body, False),
    (10, "compressed body", _compressed_body, False),
    (10, "json header", _json_header, False),
    (5, "binary header", _binary_header, False),
    (2, "lengths", _lengths, False),
    (2, "header encoding", _header_encoding, False),
    (4, "bits", _bits, False),
    (1, "noise", _noise, False),
    (2, "half", _half, True),
)
_KINDS: Final = tuple((kind, make, ends) for _, kind, make, ends in _TABLE)
_WEIGHTS: Final = tuple(weight for weight, *_ in _TABLE)
_OF_BYTES: Final = frozenset({_lengths, _header_encoding, _bits, _noise, _half})


def _encode(command: Command) -> bytes:
    try:
        return encode_bytes(command)
    except (LocalProtocolError, struct.error, OverflowError):
        # Not even a hostile peer can write this one; our encoder must not write half of it either.
        return encode_bytes(Command(RequestCode.HEART_BEAT, opaque=command.opaque & 0x7FFFFFFF))


def _frame(header: bytes, body: bytes) -> bytes:
    return struct.pack(">iI", 4 + len(header) + len(body), len(header)) + header + body


def _text(random: Random) -> str:
    return random.choice(TEXTS)


def _spoilt(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        if changed:
            at = random.randrange(len(changed))
            what = random.randrange(3)
            if what == 0:
                changed[at] ^= 1 << random.randrange(8)
            elif what == 1:
                del changed[at : at + random.randint(1, 8)]
            else:
                changed[at:at] = random.randbytes(random.randint(1, 8))
    return bytes(changed)


def _changed(random: Random, content: Any) -> Any:
    """One value somewhere inside, or a key, is another."""
    if isinstance(content, dict) and content and random.random() < 0.85:
        key = random.choice(list(content))
        changed = dict(content)
        what = random.randrange(6)
        if what == 0:
            del changed[key]
        elif what == 1:
            changed[_text(random)] = random.choice(VALUES)
        else:
            changed[key] = _changed(random, content[key])
        return changed
    if isinstance(content, list) and content and random.random() < 0.85:
        at = random.randrange(len(content))
        return [*content[:at], _changed(random, content[at]), *content[at + 1 :]]
    if random.random() < 0.3:
        return _text(random)
    return random.choice(VALUES)


def _dump(content: Any) -> bytes:
    return json.dumps(content).encode("utf-8", "surrogatepass")
