"""Signed requests and TLS, as tasks and drivers of the source make them; without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import trustme
from tests.spark.tls_servers import certificates, tls_servers

from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import NoPermission
from cometmq.protocol.request_signature import Verifier
from cometmq.spark.client import open_client
from cometmq.spark.sink.sink_options import read_sink_options
from cometmq.spark.sink.sink_writer import SinkWriter
from cometmq.spark.source.discovery import find_queues
from cometmq.spark.source.fetch import Fetcher, Wanted
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import read_source_options
from cometmq.testing.cluster import cluster
from cometmq.testing.cluster_view import ClusterView


def read_empty(name_servers: str, topic: str, **options: str) -> None:
    """All that a query does with servers: routes, offsets, group, commits, pulls."""
    chosen = read_source_options({"nameServers": name_servers, "topic": topic, **options})
    asks = open_client(chosen.connection)
    fetcher = Fetcher(chosen)
    try:
        queues = find_queues(asks, chosen)
        bounds, failures = asks.bounds(queues)
        for failure in failures.values():
            raise failure
        assert {now.end for now in bounds.values()} == {0}
        asks.committed("readers", queues)
        for failure in asks.commit("readers", dict.fromkeys(queues, 0)).values():
            raise failure
        # Nothing is there: what is wanted beyond is passed over.
        wanted = [Wanted(Range(queue, 0, 1), asks.places(queue.broker_name)) for queue in queues]
        assert list(fetcher.read(wanted)) == []
    finally:
        fetcher.close()
        asks.close()


def test_every_request_is_signed() -> None:
    with cluster() as running:
        view = ClusterView(running.name_servers, running.broker_address, suffix="acl")
        topic = view.create_topic()
        codes: list[int] = []

        def guard(_: object, command: Command) -> Command | None:
            codes.append(command.code)
            if Verifier("hush-hush").is_signed(command):
                return None
            return command.reply(ResponseCode.NO_PERMISSION, "not signed")

        running.servers.broker.dispatcher.guards.append(guard)
        lenient = {"failOnDataLoss": "false"}
        read_empty(running.name_servers, topic, accessKey="me", secretKey="hush-hush", **lenient)
        assert len(set(codes)) >= 5
        with pytest.raises(NoPermission, match="not signed"):
            read_empty(running.name_servers, topic, accessKey="me", secretKey="wrong", **lenient)


def test_all_connections_speak_tls(tmp_path: Path) -> None:
    file, client = certificates(tmp_path)
    with tls_servers(tmp_path, file) as name_servers:
        secure = {**client, "failOnDataLoss": "false"}
        read_empty(name_servers, "TBW102", **secure)
        stranger = tmp_path / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(str(stranger))
        for wrong in ({}, {**secure, "tls.client.trustCertPath": str(stranger)}):
            with pytest.raises(Exception, match="no name server answered") as caught:
                read_empty(name_servers, "TBW102", **wrong)
            assert not isinstance(caught.value, AssertionError)


def test_megabytes_pass_both_ways_over_tls(tmp_path: Path) -> None:
    file, secure = certificates(tmp_path)
    bodies = [b"%d" % number + bytes(1000) for number in range(3000)]
    with tls_servers(tmp_path, file) as name_servers:
        given = {"nameServers": name_servers, "topic": "Rows", **secure}
        sink = read_sink_options({**given, "defaultTopicQueueNums": "1"})
        writer = SinkWriter(sink, SinkMark("sink", 0, 0), "run")
        writer.write([pa.RecordBatch.from_pydict({"body": pa.array(bodies, pa.binary())})])
        writer.close()
        source = read_source_options({**given, "columns": "body"})
        with open_client(source.connection) as client:
            (queue,) = client.queues("Rows")
            places = client.places(queue.broker_name)
        fetcher = Fetcher(source)
        found = [
            body
            for batch in fetcher.read([Wanted(Range(queue, 0, len(bodies)), places)])
            for body in batch["body"].to_pylist()
        ]
        fetcher.close()
        assert found == bodies
