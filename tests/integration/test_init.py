"""What ``cometmq init`` writes, in use: servers, commands, clients and Spark's client run with it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from tests.integration.secure_set_up import SecureSetUp, running

from cometmq.client import (
    ClientConfig,
    CometError,
    Credentials,
    Message,
    ProducerConfig,
    TlsConfig,
    load_client_config,
)
from cometmq.client.sync import Producer
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign
from cometmq.remoting.client import RemotingClient
from cometmq.spark.client import open_client
from cometmq.spark.sink.sink_options import read_sink_options
from cometmq.spark.sink.sink_writer import SinkWriter
from cometmq.spark.source.fetch import Fetcher, Wanted
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import read_source_options


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureSetUp]:
    with running(tmp_path_factory.mktemp("init") / "secure") as set_up:
        yield set_up


def client_of(secure: SecureSetUp) -> ClientConfig:
    return load_client_config(secure.directory / "client.conf")


def send(config: ClientConfig) -> None:
    with Producer("shop", config=ProducerConfig(client=config, retries=0)) as producer:
        producer.send(Message(topic="Orders", body=b"17"))


def test_commands_work_with_the_clients_file(secure: SecureSetUp) -> None:
    file = str(secure.directory / "client.conf")
    sent = secure.command("produce", "-c", file, "-t", "Notes", given=b"one\ntwo\n")
    assert (sent.returncode, sent.stderr) == (0, b"2 messages sent\n")
    for group in ([], ["--group", "readers"]):
        read = secure.command("consume", "-c", file, "-t", "Notes", *group)
        assert sorted(read.stdout.split()) == [b"one", b"two"], read.stderr


def test_commands_work_with_the_operators_file_and_the_printed_secret(secure: SecureSetUp) -> None:
    file = str(secure.directory / "tools.conf")
    produce = ("produce", "-c", file, "-t", "Notices")
    sent = secure.command(*produce, given=b"one\n", COMETMQ_SECRET_KEY=secure.secret)
    assert (sent.returncode, sent.stderr) == (0, b"1 message sent\n")
    wrong = secure.command(*produce, given=b"one\n", COMETMQ_SECRET_KEY="guessed-it")
    assert wrong.returncode == 1
    assert b"check signature failed" in wrong.stderr
    without = secure.command(*produce, given=b"one\n", COMETMQ_SECRET_KEY="")
    assert (without.returncode, b"without its secret" in without.stderr) == (2, True)


def test_programs_work_with_the_clients_file(secure: SecureSetUp) -> None:
    send(client_of(secure))


def test_nobody_gets_in_without_tls_or_account(secure: SecureSetUp) -> None:
    config = client_of(secure)
    for wrong in (
        replace(config, tls=TlsConfig()),
        replace(config, tls=replace(config.tls, client_trust_path="")),
        replace(config, credentials=Credentials()),
        replace(config, credentials=Credentials(access_key="client", secret_key="guessed-it")),
    ):
        with pytest.raises(CometError):
            send(wrong)


def ask(config: ClientConfig, address: str, code: RequestCode, **ext: str) -> Command:
    """As a tool of the account does."""

    async def call() -> Command:
        account = config.credentials
        signing = partial(sign, access_key=account.access_key, secret_key=account.secret_key)
        client = RemotingClient(tls=config.tls, sign=signing)
        try:
            return await client.call(address, Command(code=code, ext=ext))
        finally:
            await client.close()

    return asyncio.run(call())


def test_clients_may_not_do_what_operators_do(
    secure: SecureSetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMETMQ_SECRET_KEY", secure.secret)
    refused = ask(client_of(secure), secure.broker, RequestCode.GET_BROKER_CONFIG)
    assert refused.code == ResponseCode.NO_PERMISSION
    operator = load_client_config(secure.directory / "tools.conf")
    served = ask(operator, secure.broker, RequestCode.GET_BROKER_CONFIG)
    assert served.code == ResponseCode.SUCCESS
    assert b"brokerName=broker-a" in bytes(served.body)


def test_spark_reads_and_writes_with_its_file(secure: SecureSetUp) -> None:
    given = {"connectionFile": str(secure.directory / "spark.conf"), "topic": "Rows"}
    sink = read_sink_options({**given, "defaultTopicQueueNums": "1"})
    writer = SinkWriter(sink, SinkMark("sink", 0, 0), "run")
    writer.write([pa.RecordBatch.from_pydict({"body": pa.array([b"one", b"two"], pa.binary())})])
    writer.close()
    source = read_source_options({**given, "columns": "body"})
    with open_client(source.connection) as client:
        (queue,) = client.queues("Rows")
        assert client.commit("readers", {queue: 0}) == {}
        places = client.places(queue.broker_name)
    fetcher = Fetcher(source)
    batches = list(fetcher.read([Wanted(Range(queue, 0, 2), places)]))
    fetcher.close()
    assert [body for batch in batches for body in batch["body"].to_pylist()] == [b"one", b"two"]
