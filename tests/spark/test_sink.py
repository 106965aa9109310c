"""Rows into topics: what each column becomes, and that a batch that is repeated writes nothing twice."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.integration.broker_links import broker_link
from tests.integration.restarting_broker import broker_away

from cometmq.model.flags import PullFlag
from cometmq.model.messages.properties import parse_properties
from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.spark import register
from cometmq.testing.cluster import cluster


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with cluster() as running:
        yield running


@pytest.fixture(autouse=True)
def _registered(spark: Any) -> None:
    register(spark)


class Servers(Protocol):
    """Ours, or RocketMQ's."""

    @property
    def name_servers(self) -> str: ...

    @property
    def broker_address(self) -> str: ...


def stored(servers: Servers, topic: str) -> list[Record]:
    """Every message of a topic, queue by queue."""
    records: list[Record] = []
    with broker_link(servers.broker_address) as link:
        for queue_id in range(4):
            offset = 0
            while True:
                header = PullMessageHeader(
                    consumer_group="Reader",
                    topic=topic,
                    queue_id=queue_id,
                    queue_offset=offset,
                    max_msg_nums=32,
                    sys_flag=int(PullFlag.SUBSCRIPTION),
                    subscription="*",
                )
                reply = link.call(Command(RequestCode.PULL_MESSAGE, encode_fields(header)))
                if reply.code == ResponseCode.TOPIC_NOT_EXIST:
                    return []
                if reply.code != ResponseCode.SUCCESS:
                    break
                records += decode_records(reply.body)
                offset = records[-1].queue_offset + 1
    return records


def wait_for_rows(address: str, topic: str) -> None:
    """Return once a topic has a message."""
    deadline = time.monotonic() + 30
    with broker_link(address) as link:
        while True:
            for queue_id in range(4):
                ext = {"topic": topic, "queueId": str(queue_id)}
                reply = link.call(Command(RequestCode.GET_MAX_OFFSET, ext))
                if (reply.ext or {}).get("offset", "0") != "0":
                    return
            assert time.monotonic() < deadline, "no row was written"
            time.sleep(0.05)


def bodies(servers: Servers, topic: str) -> list[str]:
    return sorted(bytes(record.body).decode() for record in stored(servers, topic))


def properties(record: Record) -> dict[str, str]:
    return parse_properties(record.properties_text)


def write(df: Any, servers: Servers, **options: str) -> None:
    df.write.format("rocketmq").mode("append").options(
        nameServers=servers.name_servers, **options
    ).save()


def _from_now(seconds: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)


class TestColumns:
    def test_all_of_them(self, spark: Any, servers: Servers) -> None:
        df = spark.sql(
            "select 'Columns' as topic, cast('b' as binary) as body, 'k1 k2' as keys, 'red' as tags, "
            "map('a', '1', 'UNIQ_KEY', 'x', 'b', null) as properties, 7L as shardingKey, "
            "0 as delayLevel, cast(null as timestamp) as deliverTime, 9L as queueOffset"
        )
        write(df, servers)
        (record,) = stored(servers, "Columns")
        assert bytes(record.body) == b"b"
        found = properties(record)
        assert len(found.pop("UNIQ_KEY")) == 32
        assert found.pop("__SINK").endswith("/0/0")
        for name in ("CLUSTER", "WAIT", "MSG_REGION", "TRACE_ON"):
            found.pop(name, None)
        assert found == {"KEYS": "k1 k2", "TAGS": "red", "a": "1", "__SHARDINGKEY": "7"}

    def test_other_names(self, spark: Any, servers: Servers) -> None:
        df = spark.sql("select 'Names' as t, 'text' as value, array('k', 'l') as ks, 'g' as tag")
        write(
            df,
            servers,
            topicColumn="t",
            bodyColumn="value",
            keysColumn="ks",
            tagsColumn="tag",
        )
        (record,) = stored(servers, "Names")
        assert bytes(record.body) == b"text"
        assert (properties(record)["KEYS"], properties(record)["TAGS"]) == ("k l", "g")

    def test_other_names_of_the_rest(self, spark: Any, servers: Servers) -> None:
        df = spark.createDataFrame(
            [("now", {"a": "1"}, "s7", None), ("soon", {}, None, 1)],
            "body string, more map<string,string>, shard string, level int",
        )
        write(
            df,
            servers,
            topic="NamesOfTheRest",
            propertiesColumn="more",
            shardingColumn="shard",
            delayLevelColumn="level",
        )
        by_body = self.delivered(servers, "NamesOfTheRest", 2)
        now = properties(by_body["now"])
        assert (now["a"], now["__SHARDINGKEY"]) == ("1", "s7")
        soon = by_body["soon"]
        assert soon.store_timestamp - soon.born_timestamp >= 900

    def test_the_option_topic_counts_more(self, spark: Any, servers: Servers) -> None:
        write(spark.sql("select 'Elsewhere' as topic, 'x' as body"), servers, topic="Here")
        assert (bodies(servers, "Here"), bodies(servers, "Elsewhere")) == (["x"], [])

    def test_the_same_key_goes_to_the_same_queue_in_order(
        self, spark: Any, servers: Servers
    ) -> None:
        df = spark.range(0, 400, numPartitions=1).selectExpr(
            "cast(id as string) as body", "concat('k', id % 7) as shardingKey"
        )
        write(df, servers, topic="Sharded", batchBytes="2k")
        queues: dict[int, set[int]] = {}
        last: dict[int, int] = {}
        for record in stored(servers, "Sharded"):
            number = int(bytes(record.body))
            queues.setdefault(number % 7, set()).add(record.queue_id)
            assert last.get(number % 7, -1) < number
            last[number % 7] = number
        assert len(queues) == 7
        assert all(len(ids) == 1 for ids in queues.values())
        assert sum(last.values()) == sum(range(393, 400))

    def test_delays(self, spark: Any, servers: Servers) -> None:
        due = _from_now(2)
        df = spark.createDataFrame(
            [("now", None, None), ("soon", 1, None), ("later", None, due)],
            "body string, delayLevel int, deliverTime timestamp",
        )
        write(df, servers, topic="Delayed")
        by_body = self.delivered(servers, "Delayed", 3)
        soon = by_body["soon"]
        assert soon.store_timestamp - soon.born_timestamp >= 900
        assert by_body["later"].store_timestamp >= due.timestamp() * 1000 - 100

        due = _from_now(2)
        df = spark.createDataFrame([("later", due)], "body string, due timestamp")
        write(df, servers, topic="DelayedByName", deliverTimeColumn="due")
        (later,) = self.delivered(servers, "DelayedByName", 1).values()
        assert later.store_timestamp >= due.timestamp() * 1000 - 100

    def delivered(self, servers: Servers, topic: str, count: int) -> dict[str, Record]:
        """By body, once there are so many."""
        deadline = time.monotonic() + 60
        while len(found := stored(servers, topic)) < count:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        by_body = {bytes(record.body).decode(): record for record in found}
        assert len(by_body) == count
        return by_body


class TestMistakes:
    @pytest.mark.parametrize(
        ("sql", "options", "text"),
        [
            ("select 1 as body", {}, "expected binary or string, found int32"),
            ("select 'x' as value", {}, "expected a column 'body'"),
            ("select 'x' as body, 'y' as tag", {}, "column tag: is no part of a message"),
            ("select 'x' as body", {"keysColumn": "k"}, "expected one column 'k' for keys"),
            ("select 'x' as body", {"tpic": "T"}, "unknown option"),
            ("select 'x' as body", {"batchId": "1"}, "give sinkId as well"),
            ("select 'x' as body", {"batchBytes": "8m"}, "expected at most 4194304"),
            ("select 'x' as body", {"sinkId": "a/b"}, "expected a sink id"),
            ("select cast(null as string) as body", {}, "body is null"),
        ],
    )
    def test_are_told(
        self, spark: Any, servers: Servers, sql: str, options: dict[str, str], text: str
    ) -> None:
        with pytest.raises(Exception, match=text):
            write(spark.sql(sql), servers, topic="Mistakes", **options)

    def test_a_topic_must_come_from_somewhere(self, spark: Any, servers: Servers) -> None:
        with pytest.raises(Exception, match="expected the option topic, or a column 'topic'"):
            write(spark.sql("select 'x' as body"), servers)

    def test_a_topic_cannot_be_overwritten(self, spark: Any, servers: Servers) -> None:
        df = spark.sql("select 'x' as body")
        with pytest.raises(Exception, match="messages of a topic cannot be replaced"):
            df.write.format("rocketmq").mode("overwrite").options(
                nameServers=servers.name_servers
            ).save("T")


class TestBatches:
    def test_many_rows_of_several_tasks(self, spark: Any, servers: Servers) -> None:
        df = spark.range(0, 5000, numPartitions=3).selectExpr("cast(id as string) as body")
        df.write.format("rocketmq").mode("append").options(
            nameServers=servers.name_servers, batchBytes="20k"
        ).save("Many")
        assert bodies(servers, "Many") == sorted(map(str, range(5000)))
        assert len({record.queue_id for record in stored(servers, "Many")}) == 4

    def test_a_job_without_a_name_is_another_one_each_time(
        self, spark: Any, servers: Servers
    ) -> None:
        rows = spark.sql("select 'x' as body")
        write(rows, servers, topic="Nameless")
        write(rows, servers, topic="Nameless")
        assert bodies(servers, "Nameless") == ["x", "x"]


class TestOnce:
    """What needs our broker."""

    def test_a_job_run_again_under_its_name_writes_nothing_twice(
        self, spark: Any, servers: Servers
    ) -> None:
        rows = spark.range(0, 300, numPartitions=2).selectExpr("cast(id % 100 as string) as body")
        for _ in range(2):
            write(rows, servers, topic="Again", sinkId="job-7")
        assert bodies(servers, "Again") == sorted([str(n % 100) for n in range(300)])
        write(rows, servers, topic="Again", sinkId="job-7", batchId="1")
        assert len(bodies(servers, "Again")) == 600
        with pytest.raises(Exception, match="cannot go back to batch 0"):
            write(rows, servers, topic="Again", sinkId="job-7", batchId="0")

    def test_a_repeat_is_a_repeat_only_where_that_is_asked_for(
        self, spark: Any, servers: Servers
    ) -> None:
        rows = spark.sql("select 'x' as body")
        for exactly_once in ("require", "auto", "off"):
            write(rows, servers, topic="Asked", sinkId="asked", exactlyOnce=exactly_once)
        assert bodies(servers, "Asked") == ["x", "x"]

    def test_a_job_in_other_partitions_is_refused_and_doubles_nothing(
        self, spark: Any, servers: Servers
    ) -> None:
        def rows(partitions: int) -> Any:
            return spark.range(0, 1000, numPartitions=partitions).selectExpr("string(id) as body")

        write(rows(4), servers, topic="Cut", sinkId="cut")
        for partitions in (2, 3, 8):
            with pytest.raises(Exception, match="the batch is cut differently"):
                write(rows(partitions), servers, topic="Cut", sinkId="cut", retryTimeout="1s")
            assert bodies(servers, "Cut") == sorted(map(str, range(1000)))
        write(rows(4), servers, topic="Cut", sinkId="cut")
        assert bodies(servers, "Cut") == sorted(map(str, range(1000)))

    def test_an_id_column_tells_which_rows_are_there(self, spark: Any, servers: Servers) -> None:
        for text in ("first", "another text"):
            df = spark.sql(f"select '{text}' as body, explode(sequence(1, 3)) as id")
            write(df, servers, topic="Ids", sinkId="ids", idColumn="id")
        assert bodies(servers, "Ids") == ["first"] * 3

    def test_a_task_that_fails_half_way_is_completed(
        self, spark: Any, servers: Servers, tmp_path: Path
    ) -> None:
        """The second run meets what the first has left, in another order."""
        flag = tmp_path / "failed"
        address = servers.broker_address

        def half(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            rows = [row for batch in batches for row in batch.column(0).to_pylist()]
            if flag.exists():
                rows.reverse()
            yield pa.RecordBatch.from_pydict({"body": rows[:600]})
            if not flag.exists():
                flag.touch()
                wait_for_rows(address, "Half")
                raise ValueError("half way")
            yield pa.RecordBatch.from_pydict({"body": rows[600:]})

        # Long enough that the first rows do not all wait in Spark's buffers when the failure comes.
        df = spark.range(0, 1000, numPartitions=1).selectExpr("lpad(id % 500, 2000, '0') as body")
        rows = df.mapInArrow(half, "body string")
        setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
        spark.conf.set(setting, "100")
        try:
            with pytest.raises(Exception, match="half way"):
                write(rows, servers, topic="Half", sinkId="half", batchBytes="10k")
        finally:
            spark.conf.unset(setting)
        assert 0 < len(bodies(servers, "Half")) < 1000
        write(rows, servers, topic="Half", sinkId="half", batchBytes="10k")
        numbers = sorted(int(body) for body in bodies(servers, "Half"))
        assert numbers == sorted(n % 500 for n in range(1000))


class TestStreams:
    def start(self, df: Any, servers: Servers, checkpoint: Path, **options: str) -> Any:
        return (
            df.writeStream.format("rocketmq")
            .options(nameServers=servers.name_servers, **options)
            .option("checkpointLocation", str(checkpoint))
            .queryName("a-sink")
            .trigger(availableNow=True)
            .start()
        )

    def test_topic_to_topic_repeats_nothing_when_a_commit_is_lost(
        self, spark: Any, servers: Servers, tmp_path: Path
    ) -> None:
        rows = spark.range(0, 1000, numPartitions=2).selectExpr("cast(id as string) as body")
        write(rows, servers, topic="From")
        source = (
            spark.readStream.format("rocketmq")
            .options(nameServers=servers.name_servers, startingOffsets="earliest")
            .load("From")
        )
        checkpoint = tmp_path / "checkpoint"
        query = self.start(source, servers, checkpoint, topic="To")
        assert query.awaitTermination(60)
        assert bodies(servers, "To") == sorted(map(str, range(1000)))
        self.lose_the_last_commit(checkpoint)
        query = self.start(source, servers, checkpoint, topic="To")
        assert query.awaitTermination(60)
        assert bodies(servers, "To") == sorted(map(str, range(1000)))

    def lose_the_last_commit(self, checkpoint: Path) -> None:
        """As after a crash between the last row and the note that the batch is done."""
        commits = sorted((checkpoint / "commits").glob("[0-9]*"))
        assert commits
        for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
            path.unlink(missing_ok=True)

    def test_a_repeated_batch_in_other_partitions_is_refused_and_doubles_nothing(
        self, spark: Any, servers: Servers, tmp_path: Path
    ) -> None:
        rows = spark.range(0, 400, numPartitions=2).selectExpr("string(id) as body")
        write(rows, servers, topic="FromCut")
        checkpoint = tmp_path / "checkpoint"

        def run(**options: str) -> None:
            source = (
                spark.readStream.format("rocketmq")
                .options(nameServers=servers.name_servers, startingOffsets="earliest", **options)
                .load("FromCut")
            )
            query = self.start(source, servers, checkpoint, topic="ToCut", retryTimeout="1s")
            assert query.awaitTermination(60)

        run()
        self.lose_the_last_commit(checkpoint)
        with pytest.raises(Exception, match="the batch is cut differently"):
            run(minPartitions="7")
        assert bodies(servers, "ToCut") == sorted(map(str, range(400)))
        run()
        assert bodies(servers, "ToCut") == sorted(map(str, range(400)))

    def test_a_broker_that_restarts_between_two_batches_is_waited_for(
        self, spark: Any, tmp_path: Path
    ) -> None:
        files = tmp_path / "files"
        files.mkdir()
        (files / "0.txt").write_text("a\nb\n")
        rows = spark.readStream.text(str(files)).withColumnRenamed("value", "body")
        with cluster() as servers:
            query = self.start(rows, servers, tmp_path / "checkpoint", topic="Between")
            assert query.awaitTermination(60)
            assert bodies(servers, "Between") == ["a", "b"]
            (files / "1.txt").write_text("c\n")
            with broker_away(servers, "Between"):
                query = self.start(rows, servers, tmp_path / "checkpoint", topic="Between")
                assert query.awaitTermination(60)
            assert bodies(servers, "Between") == ["a", "b", "c"]

    def test_options_that_a_stream_cannot_have(
        self, spark: Any, servers: Servers, tmp_path: Path
    ) -> None:
        df = spark.readStream.format("rate").load().selectExpr("cast(value as string) as body")
        wrong = {"topic": "T", "sinkId": "s", "batchId": "3"}
        with pytest.raises(Exception, match="a stream numbers its batches itself"):
            self.start(df, servers, tmp_path / "c", **wrong).awaitTermination(30)
