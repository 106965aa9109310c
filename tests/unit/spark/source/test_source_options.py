from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import BadOption
from cometmq.spark.queue_offsets import AtOffset, AtTime, Positions, Word
from cometmq.spark.source.source_options import DEFAULT_GROUP, SourceOptions, read_source_options

BASE = {"nameServers": "127.0.0.1:9876", "topic": "orders"}


def read(**values: str) -> SourceOptions:
    return read_source_options({**BASE, **values})


def complaint(values: Mapping[str, str]) -> str:
    with pytest.raises(BadOption) as caught:
        read_source_options(values)
    return str(caught.value)


def test_defaults() -> None:
    options = read()
    assert options.topics == ("orders",)
    assert options.group == DEFAULT_GROUP
    assert not options.commits
    assert options.filter.is_all
    assert options.start is None
    assert options.end is None
    assert options.fail_on_data_loss
    assert "body" in options.columns
    assert options.max_delay_seconds == 900


def test_names_are_known_in_any_case_as_spark_lowers_them() -> None:
    options = read_source_options(
        {
            "nameservers": "10.0.0.1:9876,10.0.0.2:9876",
            "topic": "b, a,b",
            "consumergroup": "g",
            "maxrowspertrigger": "7",
            "maxbytespertrigger": "64m",
            "maxtriggerdelay": "500ms",
            "includebody": "false",
            "tls.enable": "true",
            "tls.client.authserver": "true",
        }
    )
    assert options.connection.name_servers == ("10.0.0.1:9876", "10.0.0.2:9876")
    assert options.topics == ("a", "b")
    assert options.group == "g"
    assert options.commits
    assert options.max_rows == 7
    assert options.max_bytes == 64 * 1024 * 1024
    assert options.max_delay_seconds == 0.5
    assert "body" not in options.columns
    assert options.connection.tls.verifies_server


def test_the_topic_of_load_counts() -> None:
    assert read_source_options({"nameServers": "h:1", "path": "orders"}).topics == ("orders",)


def test_tags_and_sql() -> None:
    assert read(tags="a || b").filter.tags == ("a", "b")
    sql = read(sql="amount > 3").filter
    assert (sql.kind, sql.expression, sql.is_all) == ("SQL92", "amount > 3", False)


def test_positions() -> None:
    assert read(startingOffsets="earliest").start == Positions(Word.EARLIEST)
    assert read(startingTimestamp="1700000000000").start == Positions(AtTime(1700000000000))
    start = read(
        consumerGroup="g",
        startingOffsets='{"orders": {"a": {"0": 5, "1": -1, "2": -2, "3": "group"}, "b": "latest"}}',
        endingOffsets="1970-01-01T00:00:01+00:00",
    )
    assert start.start is not None
    queues = [MessageQueue("a", i, "orders") for i in range(5)]
    assert [start.start.of(queue) for queue in queues] == [
        AtOffset(5),
        Word.LATEST,
        Word.EARLIEST,
        Word.GROUP,
        None,
    ]
    assert start.start.of(MessageQueue("b", 9, "orders")) is Word.LATEST
    assert start.end == Positions(AtTime(1000))
    assert start.start.unknown(queues) == ["orders/b"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"topic": "a"}, ["nameServers", "10.0.0.1:9876", "none"]),
        ({**BASE, "nameServers": "nonsense"}, ["nameServers", "nonsense"]),
        ({**BASE, "nameServers": " "}, ["nameServers", "empty"]),
        ({**BASE, "topicPattern": "x.*"}, ["topic and topicPattern", "one of them"]),
        ({"nameServers": "h:1"}, ["topic", "none"]),
        ({"nameServers": "h:1", "topic": "no spaces"}, ["no spaces"]),
        ({"nameServers": "h:1", "topic": ","}, ["topic", "','"]),
        (
            {"nameServers": "h:1", "topicPattern": "("},
            ["topicPattern", "regular expression", "'('"],
        ),
        ({**BASE, "maxRowsPerTriger": "1"}, ["maxrowspertriger", "did you mean maxRowsPerTrigger"]),
        ({**BASE, "maxRowsPerTrigger": "0"}, ["maxRowsPerTrigger", "at least 1", "'0'"]),
        ({**BASE, "maxRowsPerTrigger": "ten"}, ["maxRowsPerTrigger", "whole number", "'ten'"]),
        ({**BASE, "maxBytesPerTrigger": "5 apples"}, ["maxBytesPerTrigger", "64m", "5 apples"]),
        ({**BASE, "maxTriggerDelay": "15"}, ["maxTriggerDelay", "unit", "'15'"]),
        ({**BASE, "failOnDataLoss": "maybe"}, ["failOnDataLoss", "true or false", "'maybe'"]),
        ({**BASE, "tags": "a", "sql": "b = 1"}, ["tags and sql", "both"]),
        ({**BASE, "sql": "size >>> 5"}, ["option sql", "expected"]),
        ({**BASE, "tags": "||"}, ["tags", "a || b"]),
        ({**BASE, "columns": "body,nonsense"}, ["nonsense", "queueOffset"]),
        ({**BASE, "startingOffsets": "soon"}, ["startingOffsets", "earliest, latest", "'soon'"]),
        ({**BASE, "startingOffsets": "{"}, ["startingOffsets", "cannot be read"]),
        ({**BASE, "startingOffsets": "{}"}, ["startingOffsets", "no queue"]),
        (
            {**BASE, "startingOffsets": '{"orders": {"a": {"0": -7}}}'},
            ["orders/a/0", "at least 0", "-7"],
        ),
        ({**BASE, "startingOffsets": '{"orders": {"a": {"x": 1}}}'}, ["orders/a", "'x'"]),
        ({**BASE, "startingOffsets": '{"orders": 7}'}, ["orders", "7"]),
        ({**BASE, "startingOffsets": "group"}, ["consumerGroup", "none"]),
        (
            {**BASE, "startingOffsets": "latest", "startingTimestamp": "5"},
            ["startingOffsets and startingTimestamp", "both"],
        ),
        ({**BASE, "startingTimestamp": "2026-05-01T00:00:00"}, ["startingTimestamp", "zone"]),
        ({**BASE, "groupFallback": "middle"}, ["groupFallback", "earliest, latest", "middle"]),
        ({**BASE, "consumerGroup": "no good"}, ["consumerGroup", "no good"]),
        ({**BASE, "commitOffsets": "true"}, ["commitOffsets", "consumerGroup"]),
        ({**BASE, "accessKey": "me"}, ["accessKey", "secretKey", "together"]),
        ({**BASE, "namespace": "a%b"}, ["namespace", "a%b"]),
        (
            {**BASE, "tls.enable": "true", "tls.client.certPath": "/none"},
            ["tls.client.certPath", "together"],
        ),
        (
            {**BASE, "minRowsPerTrigger": "9", "maxRowsPerTrigger": "8"},
            ["minRowsPerTrigger and maxRowsPerTrigger", "9 and 8"],
        ),
    ],
)
def test_a_complaint_says_what_was_expected_and_what_came(
    values: dict[str, str], words: list[str]
) -> None:
    text = complaint(values)
    for word in words:
        assert word in text


def test_options_of_the_other_mode_are_refused() -> None:
    with pytest.raises(BadOption, match=r"maxRowsPerTrigger: is for spark\.readStream"):
        read(maxRowsPerTrigger="5").check_for_batch()
    with pytest.raises(BadOption, match=r"endingOffsets: is for spark\.read"):
        read(endingOffsets="latest").check_for_stream()
    read(endingOffsets="latest").check_for_batch()
    read(maxRowsPerTrigger="5").check_for_stream()


def test_secrets_are_in_no_text() -> None:
    options = read(
        accessKey="me",
        secretKey="hush-1",
        securityToken="hush-2",
        **{"tls.client.keyPassword": "hush-3"},
    )
    assert options.connection.credentials.secret_key == "hush-1"
    assert "hush" not in repr(options)
    assert "hush" not in complaint(
        {**BASE, "accessKey": "me", "secretKey": "hush-1", "nonsense": "hush-2"}
    )


def test_options_travel_to_tasks() -> None:
    options = read(startingOffsets='{"orders": {"a": {"0": 5}}}')
    assert pickle.loads(pickle.dumps(options)) == options
