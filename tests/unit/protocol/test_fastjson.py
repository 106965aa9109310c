"""fastjson's dialect, read and written."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson, fastjson_reader
from cometmq.protocol.bodies.stats import BrokerConsumeStats, ConsumeStats, OffsetLag

QUEUE = MessageQueue("b", 0, "t")
QUEUE_TEXT = '{"brokerName":"b","queueId":0,"topic":"t"}'


class Inner(msgspec.Struct, rename="camel"):
    zeta: int = 1
    alpha_beta: str | None = None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (" [ ] ", []),
        ('{0:"a",-1:{2:3}}', {"0": "a", "-1": {"2": 3}}),
        ('{"a{0:":{0 : 1}, 1:2}', {"a{0:": {"0": 1}, "1": 2}),
        ('{"a\\"{0:":{0:1}}', {'a"{0:': {"0": 1}}),
        ("{'a':'it\\'s',}", {"a": "it's"}),
        ("[1,2,,3,]", [1, 2, 3]),
        ("{a:1,b_c:null,true:false}", {"a": 1, "b_c": None, "true": False}),
        ('{{"a":1}:2}', {'{"a":1}': 2}),
        ('{{"a":{"b":[1]}}:{{}:1}}', {'{"a":{"b":[1]}}': {"{}": 1}}),
        ("['\\u0041\\x42\\n\\/\\q']", ["AB\n/q"]),
        ("['\\ud83d\\ude00']", ["😀"]),
        ('["raw\ttab"]', ["raw\ttab"]),
        ("[-1,2.5,1e2,0]", [-1, 2.5, 100.0, 0]),
        ('{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_reads_what_java_writes_or_accepts(text: str, value: Any) -> None:
    assert fastjson.loads(text) == value
    assert fastjson.loads(text.encode()) == value
    assert fastjson_reader.read(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":{"x":1},"b":{"$ref":"$.a"}}', {"x": 1}),
        ('{"a":[5,{"y":2}],"b":{"$ref":"$.a[1]"}}', {"y": 2}),
        ('{"c":{"d":{"e":7}},"b":{"$ref":"$.c.d"}}', {"e": 7}),
        ('{"k.l":[1],"b":{"$ref":"$[\\"k.l\\"]"}}', [1]),
        ('{"k.l":[1],"b":{"$ref":"$.k\\\\.l"}}', [1]),
        ('{"a":{"x":1},"z":{"$ref":"$.a"},"b":{"$ref":"$.z"}}', {"x": 1}),
        ('{0:{"x":1},"b":{"$ref":"$.0"}}', {"x": 1}),
        ('{"b":{"$ref":"$.missing.x"}}', None),
        ('{"b":{"$ref":"$.b"}}', None),
        ('{"b":{"$ref":"$"}}', None),
        ('{"b":{"$ref":".."}}', None),
        ('{"b":{"$ref":"@"}}', None),
        ('{"b":{"$ref":"$[99999999999999999999]"}}', None),
        ('{"b":{"$ref":5}}', {"$ref": 5}),
        ('{"b":{"$ref":"$","x":1}}', {"$ref": "$", "x": 1}),
    ],
)
def test_references_are_resolved(text: str, value: Any) -> None:
    assert fastjson.loads(text)["b"] == value


def test_a_reference_to_the_parent_of_a_list_item() -> None:
    value = fastjson.loads('{"a":[{"name":"x"},{"$ref":"$.a[0]"}],"c":[{"$ref":"$.a"}]}')
    assert value["a"] == [{"name": "x"}, {"name": "x"}]
    assert value["c"] == [[{"name": "x"}, {"name": "x"}]]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{",
        b"[1",
        b"[1 2]",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1 "b":2}',
        b"{:1}",
        b"{[1]:2}",
        b'"open',
        b"'open",
        b"nonsense",
        b"[new]",
        b"[1]x",
        b'["\\ud800"]',
        b"['\\ud800']",
        b"\xff",
        b'"\xff"',
        b"[" * 200_000,
        b"['x'," + b"[" * 200,
        b"{1:" * 200,
        b"{{" * 200_000,
        b"[1e999]",
        b"9" * 5000,
        b"['x'," + b"9" * 5000,
        b"-",
    ],
)
def test_what_is_no_json_by_any_reading_is_refused(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        fastjson.loads(text)


def test_a_bomb_of_references_is_refused_in_time() -> None:
    levels = ",".join(
        f'"a{level}":[' + ",".join([f'{{"$ref":"$.a{level - 1}"}}'] * 10) + "]"
        for level in range(1, 30)
    )
    started = time.process_time()
    with pytest.raises(RemoteProtocolError, match="too many"):
        fastjson.loads('{"a0":[],' + levels + "}")
    assert time.process_time() - started < 2


def test_a_text_that_is_not_strict_is_read_up_to_so_many_values() -> None:
    text = b"['x'," + b"1," * (3 << 20)
    with pytest.raises(RemoteProtocolError, match="values, where at most 200000 are taken"):
        fastjson.loads(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Inner(), b'{"zeta":1}'),
        (Inner(alpha_beta="x"), b'{"alphaBeta":"x","zeta":1}'),
        ({0: "a", 1: Inner()}, b'{0:"a",1:{"zeta":1}}'),
        ({"b": 1, "a": None, "c": [None]}, b'{"b":1,"c":[null]}'),
        ({QUEUE: {"x": 1}}, b"{" + QUEUE_TEXT.encode() + b':{"x":1}}'),
        ([], b"[]"),
        ((1, 2), b"[1,2]"),
        ({}, b"{}"),
        (True, b"true"),
        ("é\x01", '"é\\u0001"'.encode()),
    ],
)
def test_writes_as_java_does(value: Any, text: bytes) -> None:
    assert fastjson.dumps(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({1: "b", 0: "a"}, b'{"0":"a","1":"b"}'),
        ({"é": "😀"}, b'{"\\u00E9":"\\uD83D\\uDE00"}'),
        ({QUEUE: 1}, b'{"{\\"brokerName\\":\\"b\\",\\"queueId\\":0,\\"topic\\":\\"t\\"}":1}'),
    ],
)
def test_writes_strict_json_for_newer_clients(value: Any, text: bytes) -> None:
    assert fastjson.dumps_standard(value) == text
    assert msgspec.json.decode(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, b"0.0"),
        (-0.0, b"-0.0"),
        (4196.6, b"4196.6"),
        (0.001, b"0.001"),
        (0.0001, b"1.0E-4"),
        (9999999.0, b"9999999.0"),
        (1e7, b"1.0E7"),
        (-12345678.9, b"-1.23456789E7"),
        (1.5e300, b"1.5E300"),
        (float("nan"), b"null"),
        (float("-inf"), b"null"),
    ],
)
def test_doubles_as_java_prints_them(number: float, text: bytes) -> None:
    assert fastjson.dumps(number) == text


@pytest.mark.parametrize(
    "text",
    [
        "{" + QUEUE_TEXT + ":5}",
        '{{"topic":"t","queueId":"0","brokerName":"b"}:5}',
        '{"{\\"brokerName\\":\\"b\\",\\"queueId\\":0,\\"topic\\":\\"t\\"}":5}',
    ],
)
def test_object_keys_become_queues_where_queues_are_wanted(text: str) -> None:
    assert fastjson.decode(text.encode(), dict[MessageQueue, int], what="table") == {QUEUE: 5}


@pytest.mark.parametrize("text", ['{"x":5}', '{{"a":1}:5}', '{"{x":5}', '{"{}":5}'])
def test_other_keys_are_no_queues(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="expected a table as body"):
        fastjson.decode(text.encode(), dict[MessageQueue, int], what="table")


def test_a_hostile_body_is_refused_before_it_costs_much() -> None:
    started = time.process_time()
    for text in (b"['x'," + b"1," * (2 << 20), b"[" + b"1," * (2 << 20) + b"1]"):
        with pytest.raises(RemoteProtocolError, match="Inner"):
            fastjson.decode(text, Inner)
    assert time.process_time() - started < 2


def test_a_deep_but_strict_value_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="Inner"):
        fastjson.decode(b'{"zeta":' + b"[" * 900 + b"]" * 900 + b"}", Inner)
    with pytest.raises(RemoteProtocolError):
        fastjson.loads('"\ud800"')


def test_typed_reading_is_lenient_about_null_and_texts_of_numbers() -> None:
    assert fastjson.decode(b'{"zeta":"5","alphaBeta":null,"new":1}', Inner) == Inner(zeta=5)
    assert fastjson.decode(b"{zeta:null}", Inner) == Inner()
    assert fastjson.decode(memoryview(b'{"zeta":2}'), Inner) == Inner(zeta=2)


@pytest.mark.parametrize("text", [b"[]", b"", b"5", b'{"zeta":"x"}', b'{"zeta":1.5}', b"[[[["])
def test_typed_reading_says_what_was_expected(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="expected a Inner as body"):
        fastjson.decode(text, Inner)


@pytest.mark.parametrize("text", ["0E", "1e+", "1.", "-"])
def test_half_a_number_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        fastjson.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{{{QUEUE_TEXT}:5}}",
        f'{{{QUEUE_TEXT} : 5, {{"brokerName":"c","queueId":-1,"topic":"%RETRY%g"}}:6}}',
        '{{"brokerName":"","queueId":2147483647,"topic":"é"}:0}',
        # What the fast way leaves to the reader.
        '{{"brokerName":"b\\u0041","queueId":0,"topic":"t"}:5}',
        '{{"topic":"t","brokerName":"b","queueId":0}:5}',
        f"{{{QUEUE_TEXT}:5,}}",
        "{}",
    ],
)
def test_tables_by_queue_are_the_same_read_fast_or_slowly(text: str) -> None:
    raw = text.encode()
    wanted = fastjson_reader.read(raw, queue_keys=True)
    assert fastjson.decode(raw, dict[MessageQueue, int]) == wanted
    nested = b'{"a":[{"b":%s}]}' % raw
    assert fastjson.decode(nested, dict[str, list[dict[str, dict[MessageQueue, int]]]]) == {
        "a": [{"b": wanted}]
    }


@pytest.mark.parametrize(
    "text",
    [
        '{{"brokerName":"b","queueId":2147483648,"topic":"t"}:5}',
        '{"\\u0001b\\u0001x\\u0001t":5}',
        '{"\\u0001":5}',
        '{{"brokerName":"b","queueId":0}:5}',
    ],
)
def test_what_is_no_queue_is_none_read_fast_either(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        fastjson.decode(text.encode(), dict[MessageQueue, int])


def test_a_table_of_many_queues_is_read_within_its_limits() -> None:
    lag = OffsetLag(broker_offset=5, consumer_offset=3)
    groups = [
        {f"group-{i}": [ConsumeStats(offset_table={MessageQueue("b", i, "t"): lag})]}
        for i in range(40_000)
    ]
    stats = BrokerConsumeStats(consume_stats_list=groups)
    raw = stats.encode()
    with pytest.raises(RemoteProtocolError, match="at most 200000 are taken"):
        fastjson_reader.read(raw, queue_keys=True)
    assert BrokerConsumeStats.decode(raw) == stats
