"""A sink's rows into a broker that loses connections, is busy, restarts, or is killed: each row once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from tests.integration.broker_links import broker_link, bulk_pull
from tests.integration.restarting_broker import broker_away

from cometmq.cli.server_process import ServerProcess
from cometmq.client.aio.bulk.broker_link import StartedCall
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.client.core.broker_order import Place
from cometmq.client.sync.bulk_client import BrokerLink, BulkClient
from cometmq.model.messages.record import decode_records
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.command import Command
from cometmq.protocol.headers.pull import BulkPullHeader
from cometmq.protocol.reply_errors import TopicNotExist
from cometmq.spark.sink import sink_repeat
from cometmq.spark.sink.sink_errors import NotExactlyOnce, NotRepeatable, SinkFenced, SinkStalled
from cometmq.spark.sink.sink_options import SinkOptions, read_sink_options
from cometmq.spark.sink.sink_writer import SinkWriter
from cometmq.testing.cluster import cluster

TOPIC = "Rows"


def options(name_servers: str, **more: str) -> SinkOptions:
    given = {"nameServers": name_servers, "topic": TOPIC, "batchBytes": "4k", "retryTimeout": "20s"}
    return read_sink_options({key: value for key, value in (given | more).items() if value})


def batches(start: int, end: int, step: int = 50) -> Iterator[pa.RecordBatch]:
    """Rows of which every third looks like another one."""
    for first in range(start, end, step):
        bodies = [
            b"%d" % (n // 3 * 3 if n % 3 else n) for n in range(first, min(first + step, end))
        ]
        yield pa.RecordBatch.from_pydict({"body": pa.array(bodies, pa.binary())})


def expected(end: int) -> Counter[bytes]:
    return Counter(value for batch in batches(0, end) for value in batch.column(0).to_pylist())


def stored(address: str, topic: str = TOPIC) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    with broker_link(address) as link:
        for queue_id in range(4):
            offset = 0
            while True:
                header = BulkPullHeader(
                    consumer_group="Reader",
                    topic=topic,
                    queue_id=queue_id,
                    offset=offset,
                    max_bytes=4 << 20,
                    max_count=10_000,
                )
                try:
                    pulled = bulk_pull(link, header)
                except TopicNotExist:
                    return found
                if pulled.status is not PullStatus.FOUND:
                    break
                found.update(bytes(record.body) for record in decode_records(pulled.records))
                offset = pulled.next_offset
    return found


def write(
    settings: SinkOptions, rows: Iterator[pa.RecordBatch], batch: int = 0, partition: int = 0
) -> tuple[int, int]:
    writer = SinkWriter(settings, SinkMark("sink", partition, batch), "run")
    try:
        writer.write(rows)
        return writer.written, writer.left_out
    finally:
        writer.close()


class Proxy:
    """Between sink and broker. ``on_reply`` sees every piece the broker sends and may keep it: return False."""

    def __init__(self, target: str, on_reply: Callable[[int], bool]) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._on_reply = on_reply
        self._count = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        # A blocked accept is not woken by a close.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            self._start(self._pump, near, far, False)
            self._start(self._pump, far, near, True)

    def _pump(self, source: socket.socket, sink: socket.socket, is_reply: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if is_reply:
                    self._count += 1
                    if not self._on_reply(self._count):
                        break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()


Through = Callable[[str, Callable[[int], bool]], contextlib.AbstractContextManager[None]]


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Through:
    """Lets sinks find the broker behind a proxy."""

    @contextlib.contextmanager
    def run(target: str, on_reply: Callable[[int], bool]) -> Iterator[None]:
        proxy = Proxy(target, on_reply)
        monkeypatch.setattr(BulkClient, "places", lambda self, name: (Place(proxy.address, True),))
        try:
            yield
        finally:
            proxy.close()

    return run


def test_rows_are_written_and_a_repeated_batch_writes_what_is_missing() -> None:
    with cluster() as servers:
        settings = options(servers.name_servers)
        assert write(settings, batches(0, 300)) == (300, 0)
        assert write(settings, batches(0, 300)) == (0, 300)
        assert write(settings, batches(0, 450)) == (150, 300)
        assert stored(servers.broker_address) == expected(450)
        assert write(settings, batches(0, 10), batch=1) == (10, 0)
        assert write(settings, batches(0, 10), batch=1, partition=1) == (10, 0)


def test_the_order_of_the_rows_does_not_matter() -> None:
    with cluster() as servers:
        settings = options(servers.name_servers)
        write(settings, batches(0, 300))
        assert write(settings, reversed(list(batches(0, 600)))) == (300, 300)
        assert stored(servers.broker_address) == expected(600)


def test_an_id_column_tells_rows_apart() -> None:
    with cluster() as servers:
        settings = options(servers.name_servers, idColumn="id")

        def rows(text: str) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"body": [text, text], "id": [1, 2]})

        assert write(settings, rows("first")) == (2, 0)
        assert write(settings, rows("another text")) == (0, 2)


def test_a_broker_that_restarted_knows_it_all(tmp_path: Path) -> None:
    for number in range(3):
        with cluster(data_directory=str(tmp_path)) as servers:
            settings = options(servers.name_servers)
            assert write(settings, batches(0, 100 + number * 100)) == (100, number * 100)
            assert stored(servers.broker_address) == expected(100 + number * 100)


def test_a_broker_that_starts_again_is_waited_for() -> None:
    with cluster() as servers:
        settings = options(servers.name_servers)
        assert write(settings, batches(0, 100)) == (100, 0)
        with broker_away(servers, TOPIC):
            assert write(settings, batches(0, 100), batch=1) == (100, 0)
        assert stored(servers.broker_address).total() == 200


def test_a_topic_without_a_broker_is_given_up_in_the_end() -> None:
    with cluster(settings={"autoCreateTopicEnable": "false"}) as servers:
        settings = options(servers.name_servers, retryTimeout="1s")
        with pytest.raises(
            SinkStalled,
            match=r"topic 'Rows' could not be written to for 1 s \(retryTimeout\): name server .* does not know",
        ):
            write(settings, batches(0, 100))


def test_replies_that_are_lost_repeat_nothing(through: Through) -> None:
    with cluster() as servers, through(servers.broker_address, lambda count: count % 5 != 0):
        settings = options(servers.name_servers)
        assert write(settings, batches(0, 3000)) == (3000, 0)
        assert stored(servers.broker_address) == expected(3000)


class Interrupted(Exception):
    """A task that ends in the middle."""


def test_attempts_that_end_anywhere_in_any_order_make_one_whole(through: Through) -> None:
    seed = int(os.environ.get("COMETMQ_SEED", random.randrange(1 << 32)))
    print(f"COMETMQ_SEED={seed}")
    chance = random.Random(seed)
    wanted: Counter[bytes] = Counter()

    def attempt(bodies: list[bytes], until: int) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < until:
            end = min(at + chance.randrange(1, 60), until)
            yield pa.RecordBatch.from_pydict({"body": pa.array(bodies[at:end], pa.binary())})
            at = end
        if until < len(bodies):
            raise Interrupted

    losing = True
    with (
        cluster() as servers,
        through(servers.broker_address, lambda count: not losing or chance.random() > 0.1),
    ):
        settings = options(servers.name_servers, batchBytes="1k")
        for batch in range(12):
            bodies = [b"%d" % chance.randrange(100) for _ in range(chance.randrange(1, 300))]
            wanted.update(bodies)
            for _ in range(chance.randrange(4)):
                chance.shuffle(bodies)
                with contextlib.suppress(Interrupted):
                    write(settings, attempt(bodies, chance.randrange(len(bodies) + 1)), batch)
            chance.shuffle(bodies)
            write(settings, attempt(bodies, len(bodies)), batch)
        losing = False
        assert stored(servers.broker_address) == wanted


def test_delayed_rows_whose_replies_are_lost_repeat_nothing(through: Through) -> None:
    with cluster() as servers, through(servers.broker_address, lambda count: count % 4 != 0):
        settings = options(servers.name_servers)
        rows = {"body": [b"%d" % (n % 100) for n in range(200)], "delayLevel": [1] * 200}
        write(settings, iter([pa.RecordBatch.from_pydict(rows)]))
        assert _wait_for(servers.broker_address, 200) == Counter({b"%d" % n: 2 for n in range(100)})


def _wait_for(address: str, count: int) -> Counter[bytes]:
    deadline = time.monotonic() + 60
    while (found := stored(address)).total() < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_without_the_brokers_help_rows_are_repeated_but_none_is_lost(
    through: Through,
) -> None:
    with cluster() as servers, through(servers.broker_address, lambda count: count % 5 != 0):
        settings = options(servers.name_servers, exactlyOnce="off")
        write(settings, batches(0, 3000))
        found = stored(servers.broker_address)
        assert found >= expected(3000)
        assert found.total() > 3000, "this shows that the proxy does lose replies"


def test_an_older_attempt_is_shut_out() -> None:
    with cluster() as servers:
        settings = options(servers.name_servers)
        old = SinkWriter(settings, SinkMark("sink", 0, 0), "run")
        new = SinkWriter(settings, SinkMark("sink", 0, 0), "run")
        try:

            def slow() -> Iterator[pa.RecordBatch]:
                yield from batches(0, 1500)
                new.write(batches(0, 3000))
                yield from batches(1500, 3000)

            with pytest.raises(SinkFenced, match="written by a later attempt"):
                old.write(slow())
        finally:
            old.close()
            new.close()
        assert stored(servers.broker_address) == expected(3000)


def test_a_busy_broker_is_waited_for_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster() as servers:
        write(options(servers.name_servers), batches(0, 10))
        finish = BrokerLink.finish
        refusals = iter([True] * 3 + [False] * 10_000)

        def busy(self: BrokerLink, started: StartedCall) -> Command:
            reply = finish(self, started)
            if "msgId" in (reply.ext or {}) and next(refusals):
                # As if it had been refused; the row that was stored is then written by nobody else.
                return Command(2, remark="[OVERLOAD]system busy", flag=1)
            return reply

        monkeypatch.setattr(BrokerLink, "finish", busy)
        settings = options(servers.name_servers, topic="Busy", retryTimeout="1s")
        assert write(settings, batches(0, 10), batch=1) == (10, 0)
        assert stored(servers.broker_address, "Busy").total() == 40
        refusals = iter([True] * 10_000)
        with pytest.raises(SinkStalled, match=r"busy for 1 s \(retryTimeout\): \[OVERLOAD\]"):
            write(settings, batches(0, 10), batch=2)


def test_a_broker_that_cannot_do_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster() as servers:
        call = BrokerLink.call

        def old_broker(self: BrokerLink, command: Command) -> Command:
            if command.code == 29002:
                return Command(3, remark=" request type 29002 not supported", flag=1)
            return call(self, command)

        monkeypatch.setattr(BrokerLink, "call", old_broker)
        with pytest.raises(NotExactlyOnce, match="set the option exactlyOnce to auto"):
            write(options(servers.name_servers, exactlyOnce="require"), batches(0, 10))
        settings = options(servers.name_servers)
        assert write(settings, batches(0, 10)) == (10, 0)
        assert write(settings, batches(0, 10)) == (10, 0), "at least once"


def test_a_broker_that_is_gone_is_given_up(through: Through) -> None:
    with cluster() as servers, through(servers.broker_address, lambda count: count < 5):
        settings = options(servers.name_servers, retryTimeout="1s")
        with pytest.raises(SinkStalled, match=r"for 1 s \(retryTimeout\)"):
            write(settings, batches(0, 3000))


@pytest.mark.parametrize(
    "kills", [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
async def test_a_broker_killed_between_store_and_reply(
    tmp_path: Path, through: Through, kills: int
) -> None:
    await _killed(tmp_path, through, kills)


async def _killed(tmp_path: Path, through: Through, kills: int) -> None:
    servers = ServerProcess(str(tmp_path), settings={"mappedFileSizeCommitLog": str(1 << 20)})
    loop = asyncio.get_running_loop()
    left = kills

    async def kill_and_start() -> None:
        await servers.kill()
        await servers.start()

    def on_reply(count: int) -> bool:
        nonlocal left
        if left and count % 9 == 0:
            # The reply is here, so the rows are stored; it is never passed on.
            left -= 1
            asyncio.run_coroutine_threadsafe(kill_and_start(), loop).result(60)
            return False
        return True

    await servers.start()
    try:
        settings = options(servers.name_server)
        count = 3000 * max(kills // 2, 1)
        with through(servers.broker, on_reply):
            assert await asyncio.to_thread(write, settings, batches(0, count)) == (count, 0)
            assert left == 0
            assert await asyncio.to_thread(stored, servers.broker) == expected(count)
            assert await asyncio.to_thread(write, settings, batches(0, count)) == (0, count)
    finally:
        await servers.stop()


def cut(end: int, count: int, partition: int) -> Iterator[pa.RecordBatch]:
    """What one of so many partitions has of all rows: a range of them, as when a queue is cut."""
    yield from batches(end * partition // count, end * (partition + 1) // count)


class TestAnotherRun:
    """A batch that is begun anew after a crash, cut as before or differently."""

    def write(
        self,
        servers: Any,
        run: str,
        partition: int,
        rows: Iterator[pa.RecordBatch],
        **more: str,
    ) -> tuple[int, int]:
        settings = options(servers.name_servers, retryTimeout="1s", **more)
        writer = SinkWriter(settings, SinkMark("sink", partition, 0), run)
        try:
            writer.write(rows)
            return writer.written, writer.left_out
        finally:
            writer.close()

    def test_cut_as_before_it_is_completed(self) -> None:
        with cluster() as servers:
            for partition in range(3):
                self.write(servers, "first", partition, batches(0, 300))
            # As if the crash had come in the middle: some partitions have more to write.
            for partition, end in ((2, 300), (0, 450), (1, 600)):
                done = self.write(servers, "second", partition, batches(0, end))
                assert done == (end - 300, 300)
            assert stored(servers.broker_address) == expected(300) + expected(450) + expected(600)

    @pytest.mark.parametrize("count", [1, 2, 3, 8])
    def test_cut_differently_it_is_refused_before_a_row_comes_twice(self, count: int) -> None:
        with cluster() as servers:
            for partition in range(4):
                rows = list(cut(1200, 4, partition))
                self.write(servers, "first", partition, iter(rows[: len(rows) // 2]))
            before = stored(servers.broker_address)
            assert before.total() == 600
            refused = 0
            for partition in range(count):
                try:
                    self.write(servers, "second", partition, cut(1200, count, partition))
                except NotRepeatable:
                    refused += 1
            assert refused
            found = stored(servers.broker_address)
            assert found <= expected(1200), "no row came twice"

    def test_a_refused_run_says_what_to_do_and_writes_nothing(self) -> None:
        with cluster() as servers:
            self.write(servers, "first", 0, batches(0, 300))
            with pytest.raises(
                NotRepeatable, match=r"250 rows that are not among its rows now.*exactlyOnce=off"
            ):
                self.write(servers, "second", 0, batches(250, 400))
            assert stored(servers.broker_address) == expected(300)
            # Cut as it was, it goes on.
            assert self.write(servers, "third", 0, batches(0, 400)) == (100, 300)

    def test_rows_of_a_partition_that_does_not_come_again_are_not_written_by_another(self) -> None:
        with cluster() as servers:
            self.write(servers, "first", 1, batches(0, 300))
            with pytest.raises(
                NotRepeatable, match=r"partitions 1 have not been written again.*for 1 s"
            ):
                self.write(servers, "second", 0, batches(0, 300))
            assert stored(servers.broker_address) == expected(300)

    def test_rows_that_nobody_has_stored_do_not_wait_for_long(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sink_repeat, "GRACE_SECONDS", 0.1)
        with cluster() as servers:
            self.write(servers, "first", 1, batches(0, 300))
            assert self.write(servers, "second", 0, batches(300, 600)) == (300, 0)

    def test_equal_rows_of_two_partitions_are_two_rows(self) -> None:
        """One waits until the other has shown that the stored ones are its own."""
        with cluster() as servers:
            self.write(servers, "first", 1, batches(0, 300))
            settings = options(servers.name_servers)
            writers = [SinkWriter(settings, SinkMark("sink", n, 0), "second") for n in (0, 1)]
            threads = [
                threading.Thread(target=writer.write, args=(batches(0, 300),)) for writer in writers
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            for writer in writers:
                writer.close()
            assert [(writer.written, writer.left_out) for writer in writers] == [(300, 0), (0, 300)]
            assert stored(servers.broker_address) == expected(300) + expected(300)

    def test_rows_with_other_contents_are_refused_unless_their_ids_say_that_they_are_the_same(
        self,
    ) -> None:
        def rows(text: str) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"body": [text, text], "id": [1, 2]})

        with cluster() as servers:
            assert self.write(servers, "first", 0, rows("a"), idColumn="id") == (2, 0)
            assert self.write(servers, "second", 0, rows("b"), idColumn="id") == (0, 2)
            self.write(servers, "first", 1, iter(list(batches(0, 5))))
            with pytest.raises(NotRepeatable, match="5 rows that are not among its rows now"):
                self.write(servers, "second", 1, batches(6, 10))

    def test_delayed_rows_wait_for_the_others(self) -> None:
        def rows() -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"body": ["a", "a"], "delayLevel": [1, 1]})

        with cluster() as servers:
            assert self.write(servers, "first", 0, rows()) == (2, 0)
            with pytest.raises(NotRepeatable, match="partitions 0 have not been written again"):
                self.write(servers, "second", 1, rows())
            assert self.write(servers, "second", 0, rows()) == (0, 2)
            assert self.write(servers, "second", 1, rows()) == (2, 0)
            assert _wait_for(servers.broker_address, 4) == Counter({b"a": 4})

    def test_several_topics_are_found_before_the_first_row_is_written(self) -> None:
        def rows(start: int, end: int) -> Iterator[pa.RecordBatch]:
            for number in range(start, end):
                yield pa.RecordBatch.from_pydict(
                    {"body": [b"%d" % number], "topic": ["Rows" if number % 2 else "Others"]}
                )

        with cluster() as servers:
            self.write(servers, "first", 0, rows(0, 10), topicColumn="topic", topic="")
            with pytest.raises(NotRepeatable, match="2 rows that are not among"):
                self.write(servers, "second", 0, rows(2, 12), topicColumn="topic", topic="")
            done = self.write(servers, "third", 0, rows(0, 12), topicColumn="topic", topic="")
            assert done == (2, 10)
            assert stored(servers.broker_address).total() == 6

    def test_after_a_restart_of_the_broker_nothing_is_forgotten(self, tmp_path: Path) -> None:
        with cluster(data_directory=str(tmp_path)) as servers:
            for partition in range(2):
                self.write(servers, "first", partition, cut(600, 2, partition))
        with cluster(data_directory=str(tmp_path)) as servers:
            for partition in range(3):
                with contextlib.suppress(NotRepeatable):
                    self.write(servers, "second", partition, cut(600, 3, partition))
            assert stored(servers.broker_address) == expected(600)
