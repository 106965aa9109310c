from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.broker.config.config_slices import FORM_4, FORM_5
from cometmq.broker.send.send_properties import (
    is_wait,
    prepare,
    prepare_batch,
    prepare_element,
    undelayed,
)
from cometmq.broker.send.stored_form import StoredForm, stored_form
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import parse_properties, split_keys
from cometmq.protocol.refusal import Refused

F49 = stored_form(FORM_4, cluster="C49", region="R", is_traced=True)
F5 = stored_form(FORM_5, cluster="C5", region="R", is_traced=True)
FORMS = pytest.mark.parametrize("form", [F49, F5], ids=["4.9", "5.x"])


def test_the_text_of_a_java_client_loses_wait_and_gains_the_cluster() -> None:
    sent = "UNIQ_KEY\x01FD00\x02WAIT\x01true\x02TAGS\x01TagA"
    prepared = prepare(sent, F49)
    assert prepared.stored == b"UNIQ_KEY\x01FD00\x02TAGS\x01TagA\x02CLUSTER\x01C49"
    assert prepared.tags_code == java_hash("TagA")
    assert prepared.keys == ["FD00"]
    assert prepared.is_wait


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("", "CLUSTER\x01C49"),
        ("WAIT\x01true", "CLUSTER\x01C49"),
        ("a\x01b", "a\x01b\x02CLUSTER\x01C49"),
        ("a\x01b\x02", "a\x01b\x02CLUSTER\x01C49"),
        ("WAIT\x01true\x02a\x01b\x02", "a\x01b\x02CLUSTER\x01C49"),
        ("a\x01b\x02WAIT\x01true", "a\x01b\x02CLUSTER\x01C49"),
        ("a\x01b\x02WAIT\x01true\x02", "a\x01b\x02CLUSTER\x01C49"),
        ("WAIT\x01x\x02WAIT\x01y\x02a\x01b", "a\x01b\x02CLUSTER\x01C49"),
        ("NO_WAIT\x01true", "NO_WAIT\x01true\x02CLUSTER\x01C49"),
    ],
)
def test_wait_is_taken_out_wherever_it_stands(sent: str, stored: str) -> None:
    assert prepare(sent, F49).stored == stored.encode()


def test_a_message_is_stored_as_rocketmq_5_does_it() -> None:
    sent = "UNIQ_KEY\x01FD00\x02WAIT\x01true\x02TAGS\x01TagA"
    prepared = prepare(sent, F5)
    stored = "MSG_REGION=R UNIQ_KEY=FD00 CLUSTER=C5 TAGS=TagA WAIT=true TRACE_ON=true "
    assert prepared.stored == stored.replace("=", "\x01").replace(" ", "\x02").encode()
    assert (prepared.tags_code, prepared.keys) == (java_hash("TagA"), ["FD00"])


def test_the_order_of_java_s_map_is_kept_for_more_names_than_it_was_made_for() -> None:
    """Of 97 names and more it has 256 buckets: the order in which Java 17 gives out these."""
    sent = "\x02".join(f"n{number}\x01v" for number in (3, 100, 42, *range(200, 294)))
    names = list(parse_properties(prepare(sent, F5).stored.decode()))
    assert len(names) == 100
    places = [_bucket(name, 256) for name in names]
    assert places == sorted(places)
    assert places != sorted(places, key=lambda place: place & 127)


def _bucket(name: str, count: int) -> int:
    bits = java_hash(name) & 0xFFFFFFFF
    return (bits ^ bits >> 16) & (count - 1)


def test_what_the_broker_knows_better_is_written_over() -> None:
    sent = "TRACE_ON\x01no\x02MSG_REGION\x01mars\x02CLUSTER\x01x"
    quiet = stored_form(FORM_5, cluster="C5", region="R", is_traced=False)
    stored = parse_properties(prepare(sent, quiet).stored.decode())
    assert stored == {"TRACE_ON": "false", "MSG_REGION": "R", "CLUSTER": "C5"}


@FORMS
@pytest.mark.parametrize(
    "sent",
    [
        "UNIQ_KEY\x01K\x02POP_CK\x010 1 2\x02TAGS\x01A",
        "POP_CK\x010 1 2\x02UNIQ_KEY\x01K\x02TAGS\x01A",
        "UNIQ_KEY\x01K\x02TAGS\x01A\x02POP_CK\x010 1 2\x02",
        "UNIQ_KEY\x01K\x02TAGS\x01A\x02POP_CK\x01a\x02POP_CK\x01b",
    ],
)
def test_where_a_message_was_popped_is_not_stored(sent: str, form: StoredForm) -> None:
    """Forwarded, it would be acknowledged at the broker it came from, and delivered again by this one."""
    for prepared in (prepare(sent, form), prepare_element(sent, form)):
        stored = parse_properties(prepared.stored.decode())
        assert "POP_CK" not in stored
        assert (stored["UNIQ_KEY"], stored["TAGS"]) == ("K", "A")
    (together,) = prepare_batch([sent.encode()], form).stored
    assert together == prepare_element(sent, form).stored


@FORMS
def test_a_text_of_nothing_but_a_handle(form: StoredForm) -> None:
    sent = "POP_CK\x010 1 2"
    assert "POP_CK" not in parse_properties(prepare(sent, form).stored.decode())
    assert b"POP_CK" not in prepare_element(sent, form).stored
    assert b"MY_POP_CK\x01a" in prepare("MY_POP_CK\x01a", form).stored


@FORMS
def test_a_batch_of_popped_messages_loses_every_handle(form: StoredForm) -> None:
    texts = [
        f"UNIQ_KEY\x01{number:04X}\x02TAGS\x01t\x02POP_CK\x010 1 2".encode() for number in range(4)
    ]
    together = prepare_batch(texts, form).stored
    assert together == [prepare_element(text.decode(), form).stored for text in texts]
    assert not any(b"POP_CK" in text for text in together)


def test_wait_false_means_not_to_wait() -> None:
    assert not prepare("WAIT\x01false", F49).is_wait
    assert prepare("NO_WAIT\x01false", F49).is_wait
    assert not is_wait("WAIT\x01false\x02")
    assert is_wait("")


def test_an_element_of_a_batch_keeps_its_text() -> None:
    prepared = prepare_element("UNIQ_KEY\x01K\x02WAIT\x01true", F49)
    assert prepared.stored == b"UNIQ_KEY\x01K\x02WAIT\x01true\x02CLUSTER\x01C49"
    as_sent = "UNIQ_KEY\x01K\x02WAIT\x01true"
    assert prepare_element(as_sent, F5).stored == as_sent.encode()


@pytest.mark.parametrize(
    ("sent", "timer"),
    [
        ("TIMER_DELAY_SEC\x0110", ("TIMER_DELAY_SEC", "10")),
        ("TIMER_DELAY_MS\x0110", ("TIMER_DELAY_MS", "10")),
        ("a\x01b\x02TIMER_DELIVER_MS\x0117\x02", ("TIMER_DELIVER_MS", "17")),
        (
            "TIMER_DELIVER_MS\x0117\x02TIMER_DELAY_MS\x013\x02TIMER_DELAY_SEC\x014",
            ("TIMER_DELAY_SEC", "4"),
        ),
        ("TIMER_DELAY_SEC\x0110\x02TIMER_OUT_MS\x0117", None),
        ("TIMER_OUT_MS\x0117", None),
    ],
)
def test_a_time_of_delivery(sent: str, timer: tuple[str, str] | None) -> None:
    prepared = prepare(sent, F49)
    assert prepared.timer == timer
    assert prepared.stored.decode().startswith(sent.rstrip("\x02"))
    if timer is not None:
        with pytest.raises(Refused, match="timed messages in a batch") as caught:
            prepare_element(sent, F49)
        assert caught.value.code == 13


def test_a_delay_level_counts_more_than_a_time() -> None:
    sent = "TIMER_DELAY_SEC\x0110\x02DELAY\x013\x02TIMER_DELIVER_MS\x0117\x02a\x01b"
    prepared = prepare(sent, F49)
    assert (prepared.timer, prepared.delay_level) == (None, 3)
    assert prepared.stored == b"DELAY\x013\x02a\x01b\x02CLUSTER\x01C49"


@pytest.mark.parametrize(
    ("sent", "level"),
    [
        ("", 0),
        ("DELAY\x013", 3),
        ("DELAY\x0199\x02", 99),
        ("DELAY\x010", 0),
        ("DELAY\x01-1", 0),
        ("DELAY\x012\x02DELAY\x011", 1),
        ("DELAY\x011\x02DELAY\x010", 0),
        ("MY_DELAY\x013", 0),
    ],
)
def test_the_delay_level_is_the_last_one_named(sent: str, level: int) -> None:
    assert prepare(sent, F49).delay_level == level


@pytest.mark.parametrize("level", ["x", "1.5", "--1", " 1", "1s", "12345678901234"])
def test_a_delay_level_is_a_number(level: str) -> None:
    with pytest.raises(Refused, match="must be the number of a delay level") as caught:
        prepare(f"a\x01b\x02DELAY\x01{level}", F49)
    assert caught.value.code == 13


def test_a_batch_holds_no_delayed_message() -> None:
    with pytest.raises(Refused, match="not supported by this broker"):
        prepare_element("DELAY\x013", F49)
    assert prepare_element("DELAY\x010", F49).delay_level == 0


def test_a_dead_letter_has_no_delay() -> None:
    letter = undelayed(prepare("UNIQ_KEY\x01K\x02DELAY\x015\x02TAGS\x01A", F49))
    assert parse_properties(letter.stored.decode()) == {
        "UNIQ_KEY": "K",
        "DELAY": "0",
        "TAGS": "A",
        "CLUSTER": "C49",
    }
    assert (letter.delay_level, letter.tags_code, letter.keys) == (0, java_hash("A"), ["K"])


@pytest.mark.parametrize(
    "sent",
    ["DELAY\x010", "TRAN_MSG\x01false", "MY_DELAY\x013", "x\x01DELAY\x02", "TIMER_DELTA\x011"],
)
def test_what_only_looks_like_it_is_stored(sent: str) -> None:
    assert prepare(sent, F49).stored.startswith(sent.rstrip("\x02").encode())


def test_a_text_that_does_not_fit_a_record_is_refused() -> None:
    room = 32767 - len("a\x01\x02CLUSTER\x01C49")
    assert len(prepare("a\x01" + "x" * room, F49).stored) == 32767
    for text in ("a\x01" + "x" * (room + 1), "a\x01" + "ö" * room, "a\x01" + "x" * 10_000_000):
        with pytest.raises(Refused, match="max 32767") as caught:
            prepare(text, F49)
        assert caught.value.code == 13


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refused, match="no text"):
        prepare("a\x01\ud800", F49)


_name = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "WAIT", "KEYS2", "MYTAGS", "a", ""])
_value = st.text(alphabet="ab \x01ü", max_size=4)
_text = st.lists(st.tuples(_name, st.sampled_from(["\x01", ""]), _value), max_size=6).map(
    lambda pairs: "\x02".join("".join(pair) for pair in pairs)
)


_form = st.sampled_from([F49, F5])


@given(text=_text, form=_form)
def test_searching_finds_what_parsing_finds(text: str, form: StoredForm) -> None:
    expected = parse_properties(text)
    prepared = prepare_element(text, form)
    tag = expected.get("TAGS")
    assert prepared.tags_code == (0 if tag is None else java_hash(tag))
    unique = [expected["UNIQ_KEY"]] if "UNIQ_KEY" in expected else []
    assert prepared.keys == unique + split_keys(expected.get("KEYS"))


@given(text=_text)
def test_the_stored_text_holds_all_pairs_but_wait(text: str) -> None:
    expected = parse_properties(text)
    expected.pop("WAIT", None)
    assert parse_properties(prepare(text, F49).stored.decode()) == {
        **expected,
        "CLUSTER": "C49",
    }


@given(text=_text)
def test_the_text_of_5_holds_all_pairs_and_those_of_the_broker(text: str) -> None:
    stored = prepare(text, F5).stored.decode()
    expected = {**parse_properties(text), "CLUSTER": "C5", "MSG_REGION": "R", "TRACE_ON": "true"}
    assert parse_properties(stored) == expected
    places = [_bucket(name, 128) for name in parse_properties(stored)]
    assert places == sorted(places)


@pytest.mark.parametrize("sent", ["TRAN_MSG\x01true", "TRAN_MSG\x01TRUE\x02"])
def test_half_of_a_transaction_is_known_and_never_part_of_a_batch(sent: str) -> None:
    assert prepare(sent, F49).is_half
    assert not prepare("TRAN_MSG\x01no", F49).is_half
    with pytest.raises(Refused, match="not supported by this broker") as caught:
        prepare_element(sent, F49)
    assert caught.value.code == 13


@given(
    st.text("0123456789ABCDEF", max_size=34),
    st.lists(
        st.sampled_from(
            [
                "WAIT\x01true",
                "WAIT\x01false",
                "TAGS\x01TagA",
                "TAGS\x01TagB",
                "UNIQ_KEY\x01other",
                "KEYS\x01a b",
                "KEYS\x01ü",
                "KEYS\x01a\x01b",
                "KEYS\x01\0",
                "KEYS\x01",
                "MYKEYS\x01a",
                "POP_CK\x010 1",
                "DELAY\x013",
                "TRAN_MSG\x01true",
                "name\x01ü",
                "name",
                "",
            ]
        ),
        max_size=5,
    ),
    st.booleans(),
    _form,
)
def test_what_is_remembered_of_a_text_is_what_reading_it_gives(
    unique_key: str, rest: list[str], is_element: bool, form: StoredForm
) -> None:
    text = "\x02".join([f"UNIQ_KEY\x01{unique_key}", *rest])
    prepared = prepare_element if is_element else prepare
    # One more property in front takes the text through the long way. Of a name with the first place in a map.
    longer = f"{_FIRST}\x01b\x02{text}"
    try:
        expected = prepared(longer, form)
    except Refused as refused:
        with pytest.raises(Refused, match=re.escape(refused.remark[:20])):
            prepared(text, form)
        return
    for _ in range(2):
        found = prepared(text, form)
        found.stored = _FIRST.encode() + b"\x01b\x02" + found.stored
        assert found == expected


_FIRST = next(name for name in map(str, range(1000)) if _bucket(name, 128) == 0)


_RESTS = [
    "",
    "A\x01b",
    "TAGS\x01t",
    "TAGS\x01t\x02",
    "KEYS\x01k",
    "UNIQ_KEY\x01Z",
    "POP_CK\x010 1",
    "TAGS\x01t\x02POP_CK\x010 1",
    "é\x01ü",
    "\x02",
    "WAIT\x01false",
]
_FIRSTS = [
    "UNIQ_KEY\x01A1",
    "UNIQ_KEY\x01B2",
    "UNIQ_KEY\x01",
    "UNIQ_KEY\x01é",
    "KEYS\x01k",
    "X\x01y",
    "",
]


@given(
    st.lists(
        st.tuples(st.sampled_from(_FIRSTS), st.sampled_from(_RESTS), st.booleans()), max_size=8
    ),
    _form,
)
def test_the_texts_of_a_batch_are_read_as_if_each_were_alone(
    elements: list[tuple[str, str, bool]], form: StoredForm
) -> None:
    texts = [
        f"{first}\x02{rest}" if is_divided else first + rest for first, rest, is_divided in elements
    ]
    together = prepare_batch([text.encode() for text in texts], form)
    alone = [prepare_element(text, form) for text in texts]
    assert together.stored == [each.stored for each in alone]
    assert together.tags_codes == [each.tags_code for each in alone]
    assert together.keys == [key for each in alone for key in each.keys]
    counts = [1] * len(texts) if together.key_counts is None else together.key_counts
    assert counts == [len(each.keys) for each in alone]


@pytest.mark.parametrize("change", ["", "\x02", "-", "\x01"])
def test_texts_that_are_nearly_alike_keep_their_differences(change: str) -> None:
    """Keys of one length, and one text among them that differs somewhere."""
    texts = [f"UNIQ_KEY\x01{number:08X}\x02TAGS\x01t\x02WAIT\x01true" for number in range(6)]
    for at in range(len(texts[0])):
        changed = texts[3][:at] + change + texts[3][at + len(change) :]
        batch = [*texts[:3], changed, *texts[4:]]
        together = prepare_batch([text.encode() for text in batch], F49)
        alone = [prepare_element(text, F49) for text in batch]
        assert together.stored == [each.stored for each in alone]
        assert together.tags_codes == [each.tags_code for each in alone]
        assert together.keys == [key for each in alone for key in each.keys]


def test_an_element_that_is_no_text_is_refused() -> None:
    with pytest.raises(Refused, match="not UTF-8"):
        prepare_batch([b"UNIQ_KEY\x01A\x02\xff\x01b"], F49)


def test_a_long_element_is_refused_after_short_ones() -> None:
    short = b"UNIQ_KEY\x01A\x02TAGS\x01t"
    with pytest.raises(Refused, match="the message properties take"):
        prepare_batch([short, b"UNIQ_KEY\x01" + b"A" * 40_000 + b"\x02TAGS\x01t"], F49)
