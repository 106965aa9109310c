"""Stores written by real Java brokers: every message is read, and every derived file made anew is the same."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.archives import unpack

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.base.ports import Clock
from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.record import Record, decode_record, decode_records
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import CommitLogConfig, ConsumeQueueConfig, IndexConfig, StoreConfig

GOLDEN = Path(__file__).parent.parent / "golden"
ALL_TIME = (0, (1 << 63) - 1)
HOST = pack_host("127.0.0.1", 10911)

Expected = dict[str, Any]


@pytest.fixture(scope="module", params=["4.9.7", "5.5.0"])
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked directory with its list of messages; tests work on copies."""
    source = GOLDEN / f"store-{request.param}"
    directory = tmp_path_factory.mktemp("golden")
    with tarfile.open(source / "store.tar.xz") as archive:
        # The wheel of the timer is 38 MB of zeros that nothing here reads.
        members = [member for member in archive if not member.name.endswith("timerwheel")]
        unpack(archive, directory, members)
    shutil.copy(source / "expected.jsonl", directory)
    return directory


@pytest.fixture
def root(golden: Path, tmp_path: Path) -> Path:
    shutil.copytree(golden / "store", tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def expected(golden: Path) -> list[Expected]:
    lines = (golden / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def store(root: Path) -> Iterator[MessageStore]:
    store = open_store(root)
    yield store
    store.close()


def open_store(
    root: Path, *, clock: Clock | None = None, store_host: bytes = HOST, index: bool = True
) -> MessageStore:
    config = StoreConfig(
        root=str(root),
        log=CommitLogConfig(file_bytes=65536, message_bytes_max=60_000),
        queues=ConsumeQueueConfig(file_bytes=500),
        index=IndexConfig(slot_count=100, entry_count=400, enabled=index),
    )
    store = MessageStore(
        config, store_host=store_host, files=SystemFiles(), clock=clock or SystemClock()
    )
    store.load()
    return store


def check(record: Record, wanted: Expected) -> None:
    found = {
        "topic": record.topic,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "physicalOffset": record.physical_offset,
        "size": record.size_bytes,
        "offsetMsgId": record.offset_id,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "bornTimestamp": record.born_timestamp,
        "bornHost": record.born_address,
        "storeTimestamp": record.store_timestamp,
        "storeHost": record.store_address,
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "bodyCRC": record.body_crc,
        "storedBodyLength": len(record.body),
        "properties": record.properties,
    }
    assert found == {name: wanted[name] for name in found}
    body = record.body
    if record.sys_flag & 1:
        body = decompress(body, record.sys_flag)
    assert len(body) == wanted["bodyLength"]
    assert hashlib.sha256(body).hexdigest() == wanted["bodySha256"]


def test_every_message_is_found_by_its_offset(
    store: MessageStore, expected: list[Expected]
) -> None:
    for wanted in expected:
        view = store.record_at(wanted["physicalOffset"])
        assert view is not None
        check(decode_record(view), wanted)
        assert store.record_at(wanted["physicalOffset"] + 1) is None


def test_every_queue_is_read_in_order(store: MessageStore, expected: list[Expected]) -> None:
    queues: dict[tuple[str, int], list[Expected]] = {}
    for wanted in expected:
        queues.setdefault((wanted["topic"], wanted["queueId"]), []).append(wanted)
    assert set(store.topics()) == {topic for topic, _ in queues}
    for (topic, queue_id), messages in queues.items():
        assert store.min_offset(topic, queue_id) == 0
        assert store.max_offset(topic, queue_id) == len(messages)
        found: list[Record] = []
        while len(found) < len(messages):
            result = store.get(topic, queue_id, len(found), 32)
            found += [record for part in result.parts for record in decode_records(part)]
            assert result.next_offset == len(found)
        for record, wanted in zip(found, messages, strict=True):
            check(record, wanted)


def test_every_message_is_found_by_every_key(store: MessageStore, expected: list[Expected]) -> None:
    for wanted in expected:
        keys = (wanted["keys"] or "").split()
        for key in [wanted["uniqKey"], *keys] if wanted["uniqKey"] else keys:
            result = store.query(wanted["topic"], key, 64, *ALL_TIME)
            offsets = [decode_record(part).physical_offset for part in result.parts]
            assert wanted["physicalOffset"] in offsets


def test_every_message_is_found_by_its_time(store: MessageStore, expected: list[Expected]) -> None:
    for wanted in expected:
        topic, queue_id = wanted["topic"], wanted["queueId"]
        offset = store.offset_by_time(topic, queue_id, wanted["storeTimestamp"])
        assert offset <= wanted["queueOffset"]
        assert store.store_time(topic, queue_id, offset) == wanted["storeTimestamp"]
        assert store.store_time(topic, queue_id, offset - 1) < wanted["storeTimestamp"]


@pytest.mark.parametrize("unclean", [False, True])
def test_queues_made_anew_from_the_log_are_the_ones_java_wrote(
    root: Path, golden: Path, unclean: bool
) -> None:
    shutil.rmtree(root / "consumequeue")
    if unclean:
        (root / "abort").touch()
    open_store(root).close()
    assert tree(root / "consumequeue") == tree(golden / "store" / "consumequeue")
    assert tree(root / "commitlog") == tree(golden / "store" / "commitlog")


def test_opening_and_closing_changes_nothing_but_our_part_of_the_checkpoint(
    root: Path, golden: Path
) -> None:
    open_store(root).close()
    before, after = tree(golden / "store"), tree(root)
    old, new = before.pop("checkpoint"), after.pop("checkpoint")
    assert after == before
    assert new[:40] == old[:40]


def test_an_index_made_anew_finds_the_same(root: Path, expected: list[Expected]) -> None:
    shutil.rmtree(root / "index")
    (root / "abort").touch()
    (root / "checkpoint").unlink()
    store = open_store(root)
    for wanted in expected:
        if wanted["uniqKey"]:
            result = store.query(wanted["topic"], wanted["uniqKey"], 64, *ALL_TIME)
            offsets = [decode_record(part).physical_offset for part in result.parts]
            assert wanted["physicalOffset"] in offsets
    store.close()


def test_messages_put_by_us_make_the_files_java_wrote(
    store: MessageStore, expected: list[Expected], golden: Path, tmp_path: Path
) -> None:
    clock = SetClock()
    host, port = expected[0]["storeHost"].split(":")
    ours = open_store(
        tmp_path / "ours", clock=clock, store_host=pack_host(host, int(port)), index=False
    )
    for wanted in expected:
        view = store.record_at(wanted["physicalOffset"])
        assert view is not None
        record = decode_record(view)
        clock.now_ms = record.store_timestamp
        tag = record.properties.get("TAGS")
        stored = ours.put(
            NewMessage(
                topic=record.topic,
                queue_id=record.queue_id,
                body=record.body,
                properties=record.properties_text.encode(),
                tags_code=java_hash(tag) if tag else 0,
                flag=record.flag,
                sys_flag=record.sys_flag,
                born_timestamp=record.born_timestamp,
                born_host=record.born_host,
                reconsume_times=record.reconsume_times,
                prepared_transaction_offset=record.prepared_transaction_offset,
            )
        )
        assert stored == Stored(
            record.physical_offset,
            record.size_bytes,
            record.queue_offset,
            record.store_timestamp,
        )
    ours.close()
    for name in ("commitlog", "consumequeue"):
        assert tree(tmp_path / "ours" / name) == tree(golden / "store" / name)


class SetClock:
    """Says what the next record needs."""

    now_ms = 0

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
