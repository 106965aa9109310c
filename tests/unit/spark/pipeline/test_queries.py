"""Which queries a pipeline becomes, and what is told about them."""

from __future__ import annotations

from cometmq.spark.pipeline.explain import explain
from cometmq.spark.pipeline.file import parse
from cometmq.spark.pipeline.queries import queries_of, source_options

TEXT = """\
name: shop
checkpoint: /c/
sources:
  orders:
    format: rocketmq
    options: {nameServers: "mq:9876", topic: Orders, secretKey: hush, accessKey: me, tags: paid}
    body: {format: text, deadLetters: Bad}
sinks:
  table: {format: parquet, options: {path: /p}}
  copy: {format: rocketmq, options: {topic: Copy, nameServers: "mq:9876"}}
"""


def test_a_query_for_each_sink_and_one_for_dead_letters() -> None:
    queries = queries_of(parse(TEXT, file="f"))
    assert [(query.name, query.checkpoint) for query in queries] == [
        ("shop-table", "/c/table"),
        ("shop-copy", "/c/copy"),
        ("shop-orders_dead_letters", "/c/orders_dead_letters"),
    ]
    letters = queries[-1]
    assert letters.failed_of == "orders"
    assert letters.sink.options == {
        "nameServers": "mq:9876",
        "secretKey": "hush",
        "accessKey": "me",
        "topic": "Bad",
    }


def test_no_two_queries_commit_to_one_group() -> None:
    for text in (TEXT, TEXT.replace("tags: paid", "consumerGroup: etl")):
        pipeline = parse(text, file="f")
        groups = [
            source_options(pipeline, pipeline.sources["orders"], query)["consumerGroup"]
            for query in queries_of(pipeline)
        ]
        assert len(set(groups)) == 3
        assert groups[0] == ("etl" if text is not TEXT else "shop-table")


def test_an_explanation_tells_promises_and_no_secrets() -> None:
    text = explain(parse(TEXT, file="f"))
    assert "hush" not in text
    assert "accessKey    (hidden)" in text
    assert "shop-table: orders -> parquet, append" in text
    assert "exactly once, for readers that heed the log _spark_metadata" in text
    assert "exactly once with CometMQ brokers, at least once with others" in text
    assert "undecodable  to topic Bad" in text
    assert "consumerGroup shop-table, shop-copy, shop-orders_dead_letters" in text


def test_a_batch_is_told_as_such() -> None:
    text = """\
name: copy
sources:
  table: {format: parquet, options: {path: /p}}
transforms:
  rows: {python: "shop.rules:clean", arguments: {limit: 7}}
sinks:
  show: {format: console}
"""
    told = explain(parse(text, file="f"))
    assert told.startswith("copy (batch) on local[*]")
    assert "shop.rules:clean(table, limit=7)" in told
