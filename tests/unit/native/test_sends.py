"""The twin of plain sends: what it takes, what it leaves to others, and that its parts say the same as Python's."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.model.messages.batch import encode_batch
from cometmq.native.choice import twin
from cometmq.native.send_run import RUN, SendRun, starts_of
from cometmq.protocol.command import BINARY, Command
from cometmq.protocol.frame import FRAME_BYTES_MAX, FrameDecoder, decode_bytes, encode_bytes
from cometmq.store.index import index_file
from cometmq.store.index.index_file import IndexFile
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import CommitLogConfig, StoreConfig
from cometmq.testing.fake_clock import FakeClock

sends = twin("sends")
pytestmark = pytest.mark.skipif(sends is None, reason="cometmq was installed without twins")

KEY = "7F0000010B6C18B4AAC2000000000000"
PROPERTIES = f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02TAGS\x01a"
FIELDS = {"a": "PG", "b": "Topic", "e": "3", "f": "0", "g": "1700000000123", "h": "7"}
PLAIN = {**FIELDS, "i": PROPERTIES, "j": "0", "k": "false", "m": "false", "n": "broker"}


def frame(fields: dict[str, Any] = PLAIN, body: bytes = b"body", **header: Any) -> bytes:
    """A request as a client in Java writes it; what is None is left out."""
    values = {"code": 310, "extFields": fields, "flag": 0, "language": "JAVA", "opaque": 5}
    values |= {"serializeTypeCurrentRPC": "JSON", "version": 409, **header}
    text = json.dumps({k: v for k, v in values.items() if v is not None}, separators=(",", ":"))
    return raw(text.encode(), body)


def raw(header: bytes, body: bytes = b"body") -> bytes:
    length = 4 + len(header) + len(body)
    return length.to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


def cut(data: bytes, at: int = 0) -> SendRun | None:
    run: SendRun | None = sends.cut_run(data, at, FRAME_BYTES_MAX)
    return run


def batch(*texts: str) -> bytes:
    return encode_batch((0, b"body", text.encode()) for text in texts)


class TestCut:
    def test_neighbours_become_one_run_up_to_what_is_not_plain(self) -> None:
        plain, other = frame(), encode_bytes(Command(34))
        data = plain * 3 + other + plain
        run = cut(data)
        assert run is not None
        assert (len(run), run.end, run.code) == (3, 3 * len(plain), RUN)
        assert [run.frame(at) for at in starts_of(run)] == [plain] * 3
        assert cut(data, run.end) is None
        assert cut(data, run.end + len(other)) is not None

    @pytest.mark.parametrize(
        "change",
        [
            {"m": "true "},
            {"m": "TRUE"},
            {"k": "no"},
            {"e": "03"},
            {"e": "+3"},
            {"e": "3.0"},
            {"e": ""},
            {"e": str(2**31)},
            {"f": "4"},
            {"f": "8"},
            {"g": str(10**18)},
            {"g": "x"},
            {"b": ""},
            {"b": "Tópic"},
            {"b": "Topic\t"},
            {"i": PROPERTIES + "é"},
            {"i": PROPERTIES + "\ud83d"},
            {"j": None},
            {"l": "many"},
            {"sink": "writer"},
        ],
    )
    def test_what_needs_a_decision_is_left_to_others(self, change: dict[str, Any]) -> None:
        assert cut(frame(PLAIN | change)) is None

    @pytest.mark.parametrize("missing", ["b", "e", "g", "i"])
    def test_a_field_that_is_missing(self, missing: str) -> None:
        assert cut(frame({key: text for key, text in PLAIN.items() if key != missing})) is None

    @pytest.mark.parametrize(
        "header",
        [
            {"code": 10},
            {"code": 311},
            {"flag": 1},
            {"flag": None},
            {"opaque": None},
            {"opaque": 2**31},
            {"remark": "x"},
            {"language": 3},
            {"another": "field"},
        ],
    )
    def test_another_header(self, header: dict[str, Any]) -> None:
        assert cut(frame(**header)) is None

    @pytest.mark.parametrize(
        "header",
        [
            b"{}",
            b'{"code":310',
            b'{"code":310,"flag":0,"opaque":1,"extFields":{}}',
            b'{"code": 310,"flag":0,"opaque":1}',
            b'{"code":310,"code":310,"flag":0,"opaque":1}',
            b"[]",
            b"\x00\x01",
        ],
    )
    def test_a_broken_header(self, header: bytes) -> None:
        assert cut(raw(header)) is None

    def test_a_field_twice(self) -> None:
        twice = frame().replace(b'"e":"3"', b'"e":"3","e":"4"')
        assert cut((len(twice) - 4).to_bytes(4, "big") + twice[4:]) is None

    def test_other_escapes_than_the_usual_ones(self) -> None:
        for escape in (rb"\u12", rb"\q", rb"\u00zz", rb"\ud83d"):
            header = frame()[8:-4].replace(rb"\u0001", escape, 1)
            assert cut(raw(header)) is None

    def test_binary_headers_and_unfinished_frames_are_left_to_others(self) -> None:
        assert cut(encode_bytes(Command(310, dict(PLAIN), b"body", encoding=BINARY))) is None
        data = frame()
        assert all(cut(data[:end]) is None for end in range(len(data)))

    def test_a_frame_above_the_bound_is_left_to_others(self) -> None:
        data = frame(body=bytes(1000))
        assert sends.cut_run(data, 0, len(data) - 4) is not None
        assert sends.cut_run(data, 0, len(data) - 5) is None

    def test_a_batch_counts_its_messages(self) -> None:
        data = frame(PLAIN | {"m": "true"}, batch("a", "b", "c"), code=320) + frame()
        run = cut(data)
        assert run is not None
        assert (len(run), list(starts_of(run))) == (4, [0, 3])

    @pytest.mark.parametrize("body", [b"", b"x", batch("a")[:-1], batch("a") + b"\0" * 21])
    def test_a_body_that_is_no_batch_is_left_to_others(self, body: bytes) -> None:
        assert cut(frame(PLAIN | {"m": "true"}, body)) is None

    def test_any_change_of_a_byte_leaves_the_frames_what_they_were(self) -> None:
        """Whatever becomes of a run, its frames are those that came, and Python can read each of them."""
        random, data = Random(7), frame() * 3
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] = random.randrange(256)
            run = cut(bytes(changed))
            if run is None:
                continue
            frames = [run.frame(number) for number in starts_of(run)]
            assert b"".join(frames) == changed[: run.end]
            for one in frames:
                assert decode_bytes(one).code == 310

    def test_a_decoder_gives_the_same_commands_with_runs(self) -> None:
        data = frame() * 2 + encode_bytes(Command(34)) + frame() + frame()[:50]
        with_runs: list[Command] = []
        decoder = FrameDecoder()
        for one in cast("Iterator[Command | SendRun]", decoder.feed(data, sends.cut_run)):
            if isinstance(one, Command):
                with_runs.append(one)
            else:
                with_runs += [decode_bytes(one.frame(at)) for at in starts_of(one)]
        assert with_runs == list(FrameDecoder().feed(data))
        assert decoder.pending_bytes == 50


def test_the_checksum_is_that_of_zlib() -> None:
    random = Random(3)
    for count in [*range(200), 255, 256, 1024, 4097, 65_537]:
        data = random.randbytes(count)
        assert sends.crc32(data) == zlib.crc32(data), count


def test_keys_enter_the_index_as_by_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where slots collide, times pass, and a group begins in the middle of a page."""
    written: list[bytes] = []
    for name, found in (("python", None), ("native", twin("index"))):
        monkeypatch.setattr(index_file, "_twin", found)
        made = IndexFile.create(SystemFiles(), str(tmp_path / name), 2000, 1000)
        random, place, moment = Random(5), 0, 1_700_000_000_000
        for _ in range(30):
            count = random.randint(1, 30)
            hashes = array("i", [random.choice((7, random.randrange(2**31))) for _ in range(count)])
            places = array("q", [place + at for at in range(count)])
            made.add_hashed(hashes, places, moment)
            place += count
            moment += random.choice((0, 1, 999, 5000))
        made.write_all()
        made.close()
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


def known(rest: str) -> Any:
    """Knows one topic, and one text that may follow the unique key."""
    shape = sends.Shape(b"", b"", b"WAIT\x01true\x02", 0, True, False)
    destination = sends.Destination("Topic", b"\x05Topic", 1, 4, None, None)
    return sends.Known(
        lambda text: shape if text == rest.encode() else None,
        lambda _: None,
        lambda name: destination if name == b"Topic" else None,
        1 << 20,
        100,
    )


@pytest.mark.parametrize(
    ("properties", "rest", "is_plain"),
    [
        (f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true", "WAIT\x01true", True),
        (f"UNIQ_KEY\x01{KEY}\x02KEYS\x01k1 k2\x02A\x01b", "KEYS\x01\0\x02A\x01b", True),
        (f"UNIQ_KEY\x01{KEY}\x02A\x01b\x02KEYS\x01k", "A\x01b\x02KEYS\x01\0", True),
        (f"UNIQ_KEY\x01{KEY}\x02KEYS\x01", "KEYS\x01\0", False),
        (f"UNIQ_KEY\x01{KEY}\x02KEYS\x01a\x01b", "KEYS\x01\0", False),
        (f"UNIQ_KEY\x01{KEY}", "", False),
        ("UNIQ_KEY\x01\x02WAIT\x01true", "WAIT\x01true", False),
        ("UNIQ_KEY\x01a\x01b\x02WAIT\x01true", "WAIT\x01true", False),
        (f"WAIT\x01true\x02UNIQ_KEY\x01{KEY}", "WAIT\x01true", False),
        (f"UNIQ_KEY\x01{KEY}\x02A\x01\0", "A\x01\0", False),
        (f"UNIQ_KEY\x01{KEY}\x02A\x01" + "b" * 600, "A\x01" + "b" * 600, False),
    ],
)
def test_properties_are_plain_when_what_follows_the_unique_key_is_known(
    properties: str, rest: str, is_plain: bool
) -> None:
    run: Any = cut(frame(PLAIN | {"i": properties}))
    assert run.prepare(0, 1, known(rest)) == int(is_plain)
    assert run.prepare(0, 1, known("another")) == 0


def test_where_the_plain_sends_of_a_run_end() -> None:
    changes: list[dict[str, str]] = [{}, {"b": "Other"}, {}, {"e": "4"}, {}, {"e": "-1"}, {}]
    tags = known("WAIT\x01true\x02TAGS\x01a")
    run: Any = cut(b"".join(frame(PLAIN | change) for change in changes))
    ends = [run.prepare(at, len(run), tags) for at in range(len(run) + 1)]
    assert ends == [1, 1, 3, 3, 5, 5, 7, 7]
    assert all(one <= other for one, other in pairwise(ends))


def test_positions_that_are_none_are_refused() -> None:
    run: Any = cut(frame())
    for wrong in (-1, 1, 2**40):
        with pytest.raises(IndexError):
            run.frame(wrong)
        with pytest.raises(IndexError):
            run.after(wrong)
    for start, stop in ((-1, 1), (0, 2), (1, 0)):
        with pytest.raises(AssertionError):
            run.prepare(start, stop, known("x"))


@pytest.mark.parametrize("is_hidden", [False, True])
def test_who_waits_is_told_of_each_message(tmp_path: Path, is_hidden: bool) -> None:
    config = StoreConfig(root=str(tmp_path), log=CommitLogConfig(file_bytes=1 << 16))
    host = b"\x7f\0\0\1\0\0\0\1"
    store = MessageStore(config, store_host=host, files=SystemFiles(), clock=FakeClock())
    store.load()
    # The first message of a log makes its file, and so is not plain.
    store.put(NewMessage(topic="Another", queue_id=0, body=b"", properties=b""))
    store.hidden.is_on = is_hidden
    heard: list[tuple[object, ...]] = []

    class Waiting:
        def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
            return ("Topic", 3) in zip(topics, queue_ids, strict=True)

        def arrived(self, *news: object) -> None:
            heard.append(news)

    store.arrivals.append(Waiting())
    texts = [f"UNIQ_KEY\x01{KEY}{'x' * number}\x02WAIT\x01true" for number in range(4)]
    queue_ids = ["3", "2", "3", "3"]
    changes = ({"i": text, "e": queue_id} for text, queue_id in zip(texts, queue_ids, strict=True))
    run: Any = cut(b"".join(frame(PLAIN | change) for change in changes))
    assert run.prepare(0, 4, known("WAIT\x01true")) == 4
    plain = sends.PlainSends()
    plain.add(SimpleNamespace(peer_host=host), run, 0, 4, False)
    assert store.append_plain(plain) == store.max_physical
    assert len(heard) == (0 if is_hidden else 3)
    store.hidden.show_all()
    del texts[1]
    assert [news[:4] for news in heard] == [("Topic", 3, end, 0) for end in (1, 2, 3)]
    assert [news[5] for news in heard] == [text.encode() + b"\x02" for text in texts]
    store.close()
