"""The twin of signatures: for certain only what ``Verifier`` would say, and in one go for a whole run."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cometmq.model.messages.batch import encode_batch
from cometmq.native.choice import twin
from cometmq.native.send_run import starts_of
from cometmq.protocol.command import BINARY, JSON, Command
from cometmq.protocol.frame import FRAME_BYTES_MAX, decode_bytes, encode_bytes
from cometmq.protocol.request_signature import PASSED_ON_FOR, PASSED_ON_MARK, Verifier, sign

sends, signatures = twin("sends"), twin("signatures")
pytestmark = pytest.mark.skipif(sends is None, reason="cometmq was installed without twins")

NAMES: Final = {310: ("b", ""), 320: ("b", "a"), 311: None}
SECRET: Final = "a secret of some length"
PROPERTIES: Final = 'UNIQ_KEY\x017F0000010B6C18B4\x02WAIT\x01true\x02TAGS\x01a/b"c\\'
SEND: Final = {
    "a": "PG",
    "b": "Topic",
    "e": "3",
    "f": "0",
    "g": "1700000000123",
    "i": PROPERTIES,
    "m": "false",
}


def request(
    fields: dict[str, str] = SEND,
    body: bytes = b"body",
    *,
    name: str = "bob",
    secret: str = SECRET,
    added: dict[str, str] | None = None,
    code: int = 310,
    encoding: int = JSON,
) -> bytes:
    """Args: added: fields that are not signed."""
    command = Command(code, dict(fields), body, encoding=encoding)
    sign(command, name, secret)
    command.ext = {**(command.ext or {}), **(added or {})}
    return encode_bytes(command)


def cut(*frames: bytes) -> Any:
    return sends.cut_run(b"".join(frames), 0, FRAME_BYTES_MAX)


def signed(run: Any, at: int = 0, secret: str = SECRET) -> int:
    """Where what the request at ``at`` claims ends, with right signatures."""
    claim = run.claim(at, NAMES)
    return at if claim is None else ends(run, at, claim, secret)


def ends(run: Any, at: int, claim: Any, secret: str = SECRET) -> int:
    end: int = run.signed(at, len(run), claim, Verifier(secret).key)
    return end


class TestClaim:
    def test_it_has_the_account_and_the_fields_that_count_for_the_code(self) -> None:
        batch = encode_batch([(0, b"x", PROPERTIES.encode())] * 3)
        run = cut(request(), request(name="root"), request(body=batch, code=320))
        claims = [run.claim(at, NAMES) for at in starts_of(run)]
        assert [claim.said for claim in claims] == [
            (310, "bob", "Topic", None),
            (310, "root", "Topic", None),
            (320, "bob", "Topic", "PG"),
        ]

    def test_a_field_that_is_missing_is_none_and_one_that_is_empty_is_not(self) -> None:
        run = cut(request({**SEND, "a": ""}))
        assert run.claim(0, {310: ("a", "c")}).said == (310, "bob", "", None)

    def test_codes_without_names_and_properties_are_for_others(self) -> None:
        run = cut(request())
        assert run.claim(0, {}) is None
        assert run.claim(0, {310: None}) is None
        assert run.claim(0, {310: ("i", "")}) is None

    @pytest.mark.parametrize(
        "added",
        [
            {"SecurityToken": "t"},
            {"_UNIQUE_KEY_QUERY": "true"},
            {"__ZONE_NAME": "z"},
            {"__ZONE_MODE": "z"},
            {PASSED_ON_MARK: "1"},
            {PASSED_ON_FOR: "alice"},
            {"another": ""},
            {"": ""},
            {"o": "1"},
            {"accesskey": "bob"},
            {"Signature": ""},
            {"Signature": "x" * 27},
            {"Signature": "x" * 29},
        ],
    )
    def test_headers_that_need_more_than_a_look(self, added: dict[str, str]) -> None:
        run = cut(request(added=added), request())
        assert run.claim(0, NAMES) is None
        claim = run.claim(1, NAMES)
        assert ends(run, 0, claim) == 0
        assert ends(run, 1, claim) == 2

    def test_requests_of_nobody(self) -> None:
        for missing in ("AccessKey", "Signature"):
            command = decode_bytes(request())
            assert command.ext is not None
            del command.ext[missing]
            run = cut(encode_bytes(command))
            assert run.claim(0, NAMES) is None
            assert ends(run, 0, cut(request()).claim(0, NAMES)) == 0

    def test_a_field_twice_and_other_headers_are_not_cut(self) -> None:
        header = request()[8:-4]
        for name in (b'"AccessKey":"bob"', b'"Signature":"%s"' % (b"x" * 28)):
            twice = header.replace(b'"extFields":{', b'"extFields":{' + name + b",")
            assert cut(frame_of(twice)) is None
        assert cut(request(encoding=BINARY)) is None

    def test_positions_that_are_none_are_refused(self) -> None:
        run = cut(request())
        for wrong in (-1, 1, 2**40):
            with pytest.raises(IndexError):
                run.claim(wrong, NAMES)
        for start, stop in ((-1, 1), (0, 2), (1, 1)):
            with pytest.raises(AssertionError):
                run.signed(start, stop, run.claim(0, NAMES), Verifier(SECRET).key)


def frame_of(header: bytes, body: bytes = b"body") -> bytes:
    length = 4 + len(header) + len(body)
    return length.to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


class TestSigned:
    def test_it_ends_where_something_else_is_claimed(self) -> None:
        other = {**SEND, "b": "Topic2"}
        run = cut(
            *[request()] * 3,
            *[request(other)] * 2,
            request(name="root"),
            # The group does not count for this code.
            *[request(), request({**SEND, "a": "PG2"})],
        )
        assert [signed(run, at) for at in range(len(run))] == [3, 3, 3, 5, 5, 6, 8, 8]

    def test_a_claim_outlives_its_run(self) -> None:
        other = request({"g": "1", **dict(reversed(SEND.items()))}, b"another")
        claim = cut(request(), other).claim(1, NAMES)
        again = cut(*[other, request(), request()], request({**SEND, "b": "Topic2"}))
        assert ends(again, 0, claim) == 3
        assert ends(again, 3, claim) == 3
        for changed in ({"b": "Topic", "a": "PG"}, {"b": "Topi"}, {"b": "Topic2"}, {"b": "topic"}):
            same = changed["b"] == "Topic"
            assert ends(cut(request({**SEND, **changed})), 0, claim) == same
        assert ends(cut(request(name="bo")), 0, claim) == 0
        fields = {name: value for name, value in SEND.items() if name != "a"}
        claim = cut(request(fields)).claim(0, {310: ("a", "b")})
        assert ends(cut(request()), 0, claim) == 0
        assert ends(cut(request(fields)), 0, claim) == 1

    @pytest.mark.parametrize("wrong_at", [0, 1, 15, 16, 17, 39])
    def test_it_ends_at_the_first_wrong_signature(self, wrong_at: int) -> None:
        frames = [request(body=b"%d" % number) for number in range(40)]
        frames[wrong_at] = request(secret="another secret")
        run = cut(*frames)
        assert signed(run) == wrong_at
        if wrong_at < 39:
            assert signed(run, wrong_at + 1) == 40

    def test_every_letter_of_a_signature_counts(self) -> None:
        right = (decode_bytes(request()).ext or {})["Signature"]
        for at, letter in enumerate(right):
            wrong = right[:at] + ("A" if letter != "A" else "B") + right[at + 1 :]
            assert signed(cut(request(added={"Signature": wrong}))) == 0

    def test_another_secret_or_any_other_byte_is_not_signed(self) -> None:
        assert signed(cut(request()), secret=SECRET + "x") == 0
        frame, random = request(), Random(3)
        for at in range(len(frame)):
            changed = bytearray(frame)
            changed[at] ^= 1 << random.randrange(8)
            run = cut(bytes(changed))
            if run is not None and signed(run):
                assert Verifier(SECRET).is_signed(decode_bytes(run.frame(0)))

    def test_secrets_of_any_length(self) -> None:
        for secret in ("s", "x" * 64, "x" * 65, "x" * 500, "ü\U0001f600"):
            assert signed(cut(request(secret=secret)), secret=secret) == 1

    def test_a_batch_is_signed_as_a_whole(self) -> None:
        batch = encode_batch([(0, bytes(number), PROPERTIES.encode()) for number in range(20)])
        run = cut(*[request(body=batch, code=320)] * 3)
        assert signed(run) == 60
        assert signed(run, 20) == 60

    def test_texts_that_are_longer_than_usual_are_for_others(self) -> None:
        for fields in ({"c": "x" * 1100}, {"c": "x" * 800}, {"i": "y" * 600}):
            assert signed(cut(request({**SEND, **fields}))) == 0


@pytest.fixture(params=[(True, 16), (True, 8), (True, 1), (False, 16), (False, 1)])
def processor(request: pytest.FixtureRequest) -> Iterator[None]:
    """As far as this one can stand for it."""
    has_instructions, at_once = request.param
    before = signatures.use_processor(False, 1)
    if at_once > before[1] or has_instructions > before[0]:
        signatures.use_processor(*before)
        pytest.skip("this processor has not got that")
    signatures.use_processor(has_instructions, at_once)
    yield
    signatures.use_processor(*before)


@pytest.mark.usefixtures("processor")
class TestSizes:
    def test_bodies_of_any_size_alone(self) -> None:
        for size in [*range(200), 1023, 1024, 1025, 4095, 4096, 4097, 5000, 100_000]:
            run = cut(request(body=Random(size).randbytes(size)))
            assert signed(run) == 1, size

    @pytest.mark.parametrize("count", [2, 4, 5, 8, 9, 12, 15, 16, 17, 21, 40])
    def test_bodies_of_any_sizes_together(self, count: int) -> None:
        random = Random(count)
        for sizes in ((100,), range(200), (0, 5000), (1024, 1024, 1025), (4096, 4097, 100_000)):
            frames = [request(body=random.randbytes(random.choice(sizes))) for _ in range(count)]
            assert signed(cut(*frames)) == count

    def test_nothing_is_right_by_mistake(self) -> None:
        random = Random(1)
        frames = [request(body=random.randbytes(100)) for _ in range(40)]
        wrong = [frame[:-1] + bytes([frame[-1] ^ 1]) for frame in frames]
        for at in range(40):
            assert signed(cut(*frames[:at], wrong[at], *frames[at + 1 :])) == at


PLAIN: Final = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=40)
VALUES: Final = {
    **dict.fromkeys("acn", PLAIN),
    "b": PLAIN.filter(bool),
    **{name: st.integers(-(2**31), 2**31 - 1).map(str) for name in "defhjl"},
    "g": st.integers(0, 2**60).map(str),
    "i": st.text(st.characters(max_codepoint=0x7F), max_size=80),
    "k": st.sampled_from(("true", "false")),
}
HEADERS: Final = st.fixed_dictionaries(
    {name: VALUES[name] for name in "begi"},
    optional={name: VALUES[name] for name in "acdfhjkln"},
).flatmap(lambda fields: st.permutations(list(fields.items())))
ADDED: Final = st.dictionaries(
    st.sampled_from(("__ZONE_NAME", "_UNIQUE_KEY_QUERY", "SecurityToken", "x", "b", "Signature")),
    PLAIN,
    max_size=1,
)


@given(st.lists(st.tuples(HEADERS, ADDED, st.binary(max_size=300)), min_size=1, max_size=20))
@example([(list(SEND.items()), {}, b"")] * 20)
def test_what_is_signed_is_what_the_verifier_says(
    made: list[tuple[list[tuple[str, str]], dict[str, str], bytes]],
) -> None:
    verifier = Verifier(SECRET)
    for fields, added, body in made:
        data = request(dict(fields), body, added=added)
        run = cut(data)
        if run is None:
            continue
        command = decode_bytes(data)
        assert command.ext is not None
        claim = run.claim(0, NAMES)
        if claim is not None:
            assert claim.said == (310, command.ext["AccessKey"], command.ext["b"], None)
        is_right = verifier.is_signed(command)
        assert not signed(run) or is_right
        if claim is not None and "\0" not in command.ext["i"]:
            assert signed(run) == is_right
    run = cut(*(request(dict(fields), body, added=added) for fields, added, body in made))
    if run is not None:
        found = [signed(run, at) for at in range(len(run))]
        assert all(one <= other for one, other in pairwise(found))
        for at, end in enumerate(found):
            for between in range(at, end):
                assert verifier.is_signed(decode_bytes(run.frame(between)))
                assert run.claim(between, NAMES).said == run.claim(at, NAMES).said


class TestKey:
    def test_nothing_shows_or_copies_it(self) -> None:
        key = Verifier("hush-hush").key
        assert "hush" not in repr(key)
        with pytest.raises(TypeError):
            pickle.dumps(key)
        with pytest.raises(TypeError):
            copy.deepcopy(key)
        assert [name for name in dir(key) if not name.startswith("__")] == []

    def test_a_secret_is_as_hmac_has_it(self) -> None:
        for wrong in (b"", bytes(63), bytes(65)):
            with pytest.raises(ValueError, match="64 bytes"):
                signatures.Key(wrong)


def test_headers_of_other_clients_are_the_same_to_it() -> None:
    """With spaces between its parts, a header is decoded; in another order it is not."""
    command = decode_bytes(request())
    ext = dict(sorted((command.ext or {}).items(), reverse=True))
    header: dict[str, Any] = {"extFields": ext, "opaque": 1, "flag": 0, "code": 310, "version": 0}
    assert cut(frame_of(json.dumps(header).encode())) is None
    run = cut(frame_of(json.dumps(header, separators=(",", ":")).encode()))
    assert signed(run) == 1
