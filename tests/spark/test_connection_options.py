"""Options on how servers are talked to, both ways: names, credentials, TLS, and how long to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.spark.test_sink import bodies
from tests.spark.tls_servers import certificates, tls_servers

from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import SECURITY_TOKEN, Verifier
from cometmq.spark import register
from cometmq.testing.cluster import Cluster, cluster

SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
# As SEND_MESSAGE_V2 names its fields.
PRODUCER_GROUP, DEFAULT_TOPIC_QUEUE_NUMS = "a", "d"


@pytest.fixture(autouse=True)
def _registered(spark: Any) -> None:
    register(spark)


@pytest.fixture
def servers() -> Iterator[Cluster]:
    """Of each test's own: it is told how to answer."""
    with cluster() as running:
        yield running


def write(spark: Any, name_servers: str, topic: str, **options: str) -> None:
    rows = spark.range(0, 20, numPartitions=1).selectExpr("cast(id as string) as body")
    writer = rows.write.format("rocketmq").mode("append")
    writer.options(nameServers=name_servers, **options).save(topic)


def read(spark: Any, name_servers: str, topic: str, **options: str) -> list[str]:
    reader = spark.read.format("rocketmq").options(nameServers=name_servers, **options)
    return sorted(bytes(row.body).decode() for row in reader.load(topic).collect())


EVERY = sorted(map(str, range(20)))


def guard_with(servers: Cluster, answer: Callable[[Command], Command | None]) -> None:
    servers.servers.broker.dispatcher.guards.append(lambda _, command: answer(command))


def test_every_request_is_signed_and_has_the_token(spark: Any, servers: Cluster) -> None:
    codes: set[int] = set()

    def answer(command: Command) -> Command | None:
        codes.add(command.code)
        if not Verifier("hush-hush").is_signed(command):
            return command.reply(ResponseCode.NO_PERMISSION, "not signed")
        if (command.ext or {}).get(SECURITY_TOKEN) != "for-a-day":
            return command.reply(ResponseCode.NO_PERMISSION, "no token")
        return None

    guard_with(servers, answer)
    account = {"accessKey": "me", "secretKey": "hush-hush", "securityToken": "for-a-day"}
    write(spark, servers.name_servers, "Signed", **account)
    assert read(spark, servers.name_servers, "Signed", **account) == EVERY
    assert {RequestCode.BULK_PULL, RequestCode.OPEN_SINK} < codes
    for wrong, reason in (("secretKey", "not signed"), ("securityToken", "no token")):
        with pytest.raises(Exception, match=reason):
            read(spark, servers.name_servers, "Signed", **{**account, wrong: "guessed"})
        with pytest.raises(Exception, match=reason):
            write(spark, servers.name_servers, "Signed", **{**account, wrong: "guessed"})


def test_every_connection_speaks_tls(spark: Any, tmp_path: Path) -> None:
    file, secure = certificates(tmp_path)
    with tls_servers(tmp_path, file) as name_servers:
        write(spark, name_servers, "Secret", **secure)
        assert read(spark, name_servers, "Secret", **secure) == EVERY
        stranger = tmp_path / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(str(stranger))
        doubted = {**secure, "tls.client.trustCertPath": str(stranger)}
        for wrong in ({}, doubted):
            with pytest.raises(Exception, match="no name server answered"):
                read(spark, name_servers, "Secret", **wrong)
        unproven = {**doubted, "tls.test.mode.enable": "true"}
        assert read(spark, name_servers, "Secret", **unproven) == EVERY


def test_everything_may_be_in_a_file(spark: Any, tmp_path: Path) -> None:
    file, secure = certificates(tmp_path)
    with tls_servers(tmp_path, file) as name_servers:
        connection = tmp_path / "spark.conf"
        connection.write_text(
            "".join(f"{key}={value}\n" for key, value in secure.items())
            + "accessKey=me\nsecretKey=hush-hush\n"
        )
        options = {"connectionFile": str(connection)}
        write(spark, name_servers, "Filed", **options)
        assert read(spark, name_servers, "Filed", **options) == EVERY


def test_a_namespace_is_part_of_every_name(spark: Any, servers: Cluster) -> None:
    write(spark, servers.name_servers, "Orders", namespace="tenant")
    assert read(spark, servers.name_servers, "Orders", namespace="tenant") == EVERY
    assert bodies(servers, "tenant%Orders") == EVERY
    assert bodies(servers, "Orders") == []


def test_a_task_asks_for_so_many_bytes_at_once(spark: Any, servers: Cluster) -> None:
    write(spark, servers.name_servers, "Small")
    asked: list[str] = []

    def note(command: Command) -> None:
        if command.code == RequestCode.BULK_PULL:
            asked.append((command.ext or {})["maxBytes"])

    guard_with(servers, note)
    assert read(spark, servers.name_servers, "Small", pullBytes="2k") == EVERY
    assert set(asked) == {"2048"}


def test_a_producer_names_its_group_and_the_queues_of_a_new_topic(
    spark: Any, servers: Cluster
) -> None:
    seen: list[dict[str, str]] = []

    def note(command: Command) -> None:
        if command.code in SENDS:
            seen.append(dict(command.ext or {}))

    guard_with(servers, note)
    write(spark, servers.name_servers, "New", producerGroup="Nightly", defaultTopicQueueNums="2")
    assert bodies(servers, "New") == EVERY
    assert {ext[PRODUCER_GROUP] for ext in seen} == {"Nightly"}
    assert {ext[DEFAULT_TOPIC_QUEUE_NUMS] for ext in seen} == {"2"}
    topic = servers.servers.broker.core.topics.get("New")
    assert topic is not None
    assert topic.write_queue_nums == 2


@pytest.mark.parametrize(("timeout", "opened"), [("1s", 2), ("20s", 1)])
def test_a_sink_waits_for_an_answer_as_long_as_send_timeout(
    spark: Any, servers: Cluster, timeout: str, opened: int
) -> None:
    codes: list[int] = []

    def answer_late(command: Command) -> None:
        codes.append(command.code)
        if sum(code in SENDS for code in codes) == 1 and command.code in SENDS:
            # The broker does nothing else meanwhile: longer than the one time-out, shorter than the other.
            time.sleep(2.5)

    guard_with(servers, answer_late)
    write(spark, servers.name_servers, "Slow", sendTimeout=timeout)
    # Who does not wait connects anew, and learns that the message has been stored all the same.
    assert codes.count(RequestCode.OPEN_SINK) == opened
    assert bodies(servers, "Slow") == EVERY


def test_a_sink_gives_up_after_retry_timeout(spark: Any, servers: Cluster) -> None:
    guard_with(servers, lambda command: _busy(command) if command.code in SENDS else None)
    with pytest.raises(Exception, match=r"for 1 s \(retryTimeout\)"):
        write(spark, servers.name_servers, "Busy", retryTimeout="1s")


def test_a_source_gives_up_after_read_timeout(spark: Any, servers: Cluster) -> None:
    write(spark, servers.name_servers, "Stuck")
    pulls = (RequestCode.BULK_PULL, RequestCode.PULL_MESSAGE)
    guard_with(servers, lambda command: _busy(command) if command.code in pulls else None)
    with pytest.raises(Exception, match="nothing came for 1 s"):
        read(spark, servers.name_servers, "Stuck", readTimeout="1s")


def test_a_planner_gives_up_after_call_timeout(spark: Any, servers: Cluster) -> None:
    write(spark, servers.name_servers, "Mute")

    def answer_late(command: Command) -> None:
        if command.code in (RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET):
            # Longer than the time-out.
            time.sleep(1)

    guard_with(servers, answer_late)
    with pytest.raises(Exception, match=r"did not answer request \d+ in time"):
        read(spark, servers.name_servers, "Mute", callTimeout="200ms")


def _busy(command: Command) -> Command:
    return command.reply(ResponseCode.SYSTEM_BUSY, "come back later")
