"""Pipeline files: what is read from them, and what is said about each mistake, with its line."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from cometmq.base.errors import UsageError
from cometmq.spark.pipeline.definition import Pipeline
from cometmq.spark.pipeline.document import PipelineFileError
from cometmq.spark.pipeline.file import load, parse
from cometmq.spark.pipeline.shipped import description_of, find, shipped

GOOD = """\
name: orders
description: Orders into a table.
parameters:
  topic: Orders
  path:
checkpoint: ./checkpoint
trigger: 10 seconds
spark:
  spark.sql.shuffle.partitions: 2
sources:
  messages:
    format: rocketmq
    options:
      nameServers: ${env:SERVERS:-127.0.0.1:9876}
      topic: ${topic}
    body:
      format: json
      schema: order INT
      deadLetters: ${topic}-dead
    watermark:
      column: bornTimestamp
      delay: 5 minutes
transforms:
  big:
    sql: |
      SELECT *
      FROM messages
  clean:
    python: shop.rules:clean
    inputs: big
    arguments:
      limit: 7
      name: "7"
      share: 0.5
      is_on: true
      since: 2026-05-01
sinks:
  table:
    format: parquet
    partitionBy: day
    options:
      path: ${path}/$${literal}
"""


def read(text: str, **given: str) -> Pipeline:
    return parse(text, file="orders.yaml", given=given)


def mistakes(text: str, **given: str) -> list[str]:
    with pytest.raises(PipelineFileError) as caught:
        read(text, **given)
    return str(caught.value).splitlines()


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_whole_file() -> None:
    pipeline = read(GOOD, path="/data")
    assert (pipeline.name, pipeline.master) == ("orders", "local[*]")
    assert pipeline.is_stream
    assert str(pipeline.trigger) == "every 10 seconds"
    source = pipeline.sources["messages"]
    assert source.options == {"nameServers": "127.0.0.1:9876", "topic": "Orders"}
    assert source.body is not None
    assert source.body.dead_letters is not None
    assert source.body.dead_letters.topic == "Orders-dead"
    assert source.watermark is not None
    assert source.watermark.delay == "5 minutes"
    assert pipeline.transforms["big"].sql == "SELECT *\nFROM messages\n"
    assert pipeline.transforms["big"].sql_line == 26
    assert pipeline.transforms["clean"].inputs == ("big",)
    assert pipeline.transforms["clean"].arguments == {
        "limit": 7,
        "name": "7",
        "share": 0.5,
        "is_on": True,
        "since": "2026-05-01",
    }
    sink = pipeline.sinks["table"]
    assert (sink.view, sink.mode, sink.partition_by) == ("clean", "append", ("day",))
    assert sink.options == {"path": "/data/${literal}"}


def test_the_environment_fills_in() -> None:
    pipeline = parse(GOOD, file="f", given={"path": "p"}, environment={"SERVERS": "mq:1"})
    assert pipeline.sources["messages"].options["nameServers"] == "mq:1"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "format: parquet",
            "format: parket",
            "39: format of sink table must be one of rocketmq, parquet, delta, iceberg, console, json, csv, "
            "orc, not 'parket' (did you mean parquet?)",
        ),
        ("sinks:", "sink:", "37: the file has no key 'sink' (did you mean sinks?); known: name, "),
        ("sinks:", "sink:", "1: the file needs at least one entry in sinks"),
        (
            "trigger: 10 seconds",
            "trigger: sometimes",
            "7: trigger is asap, once, or a span such as",
        ),
        ("delay: 5 minutes", "delay: 5m", "22: delay is a span such as '10 minutes', not '5m'"),
        ("inputs: big", "inputs: small", "30: transform clean takes 'small', which is no source"),
        ("python: shop.rules:clean", "python: shop.clean", "29: python of transform clean must be"),
        (
            "    sql: |",
            "    python: a:b\n    sql: |",
            "24: transform big needs either sql: a SELECT",
        ),
        ("schema: order INT", "as: value", "16: body of source messages needs schema"),
        ("      deadLetters: ${topic}-dead\n", "", "16: body of source messages needs deadLetters"),
        ("checkpoint: ./checkpoint\n", "", "1: a stream into table needs checkpoint"),
        (
            "format: rocketmq",
            "format: rocketmq\n    stream: maybe",
            "13: stream of source messages",
        ),
        (
            "topic: ${topic}\n",
            "topic: ${tpic}\n",
            "15: ${tpic}: no such parameter; known: topic, path",
        ),
        (
            "127.0.0.1:9876}",
            "x}\n      topic: a",
            "16: 'topic' was given before, in line 15; keep one",
        ),
        ("  spark.sql.shuffle.partitions: 2", "  partitions: 2", "9: settings of Spark begin with"),
        (
            "    partitionBy: day",
            "    mode: update",
            "40: a stream into parquet takes mode append only",
        ),
        ("  big:", "  2big:", "24: a name in transforms takes letters, digits and '_'"),
        ("name: orders", "name: my orders", "1: name takes letters, digits, '_' and '-'"),
        (
            "      path: ${path}/$${literal}",
            "      mode: x",
            "41: sink table of format parquet needs",
        ),
        ("    format: parquet", "", "38: sink table needs format: one of rocketmq, parquet"),
        (
            "  messages:\n    format",
            "  messages: rocketmq\n  other:\n    format",
            "11: source messages must be",
        ),
        ("sources:", "sources: [", "12: this is no YAML"),
    ],
)
def test_every_mistake_is_told_with_its_line(old: str, new: str, expected: str) -> None:
    lines = mistakes(changed(old, new), path="/data")
    assert any(line.startswith(f"orders.yaml:{expected}") for line in lines), lines


def test_all_mistakes_are_told_at_once() -> None:
    text = changed("format: parquet", "format: parket").replace("10 seconds", "never")
    lines = mistakes(text)
    assert len(lines) == 3
    assert lines[0].startswith(
        "orders.yaml:5: parameter path has no default: give it with --set path="
    )
    assert lines[1].startswith("orders.yaml:7: trigger")
    assert lines[2].startswith("orders.yaml:39: format")


def test_a_parameter_that_the_file_does_not_have() -> None:
    lines = mistakes(GOOD, path="x", colour="red")
    assert lines == [
        "orders.yaml:3: --set colour: the file has no such parameter; known: topic, path"
    ]


def test_an_environment_without_the_variable() -> None:
    lines = mistakes(changed("${env:SERVERS:-127.0.0.1:9876}", "${env:SERVERS}"), path="x")
    assert lines == [
        "orders.yaml:14: ${env:SERVERS}: the environment has no variable SERVERS; set it"
    ]


@pytest.mark.parametrize("text", ["", "   \n", "- a\n- b", "just text"])
def test_what_is_no_pipeline(text: str) -> None:
    assert mistakes(text)[0].startswith("orders.yaml:1: ")


def test_a_batch_takes_no_watermark_and_needs_no_checkpoint() -> None:
    text = changed("format: rocketmq", "format: rocketmq\n    stream: false").replace(
        "checkpoint: ./checkpoint\n", ""
    )
    assert mistakes(text, path="x") == [
        "orders.yaml:20: source messages is no stream and takes no watermark; remove it"
    ]


def test_dead_letters_of_a_table_need_a_name_server() -> None:
    text = changed("format: rocketmq", "format: parquet\n    stream: false").replace(
        "topic: $", "path: $"
    )
    assert any("needs options: nameServers" in line for line in mistakes(text, path="x"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the pipeline file .*: No such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load(tmp_path / "bytes.yaml")


def test_errors_survive_pickling() -> None:
    with pytest.raises(PipelineFileError) as caught:
        read("name: x")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_secrets_are_in_no_text() -> None:
    pipeline = read(
        changed("      topic: ${topic}\n", "      secretKey: hush\n      topic: a\n"), path="x"
    )
    assert "hush" not in repr(pipeline)


@pytest.mark.parametrize("name", list(shipped()))
def test_those_that_come_along_can_be_read(name: str) -> None:
    path = find(name)
    assert description_of(path)
    text = path.read_text()
    given = {
        line.strip().split(":")[0]: "x"
        for line in text.split("parameters:")[1].split("\n\n")[0].splitlines()
        if line.strip().split("#")[0].strip().endswith(":")
    }
    assert load(path, given=given).name == name


def test_a_name_that_is_nothing() -> None:
    with pytest.raises(UsageError, match="those that do: archive, "):
        find("archiv")
