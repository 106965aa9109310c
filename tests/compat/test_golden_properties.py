"""Property texts in stores of real Java brokers: given what was sent, we store the same; of 5.x, the same bytes."""

from __future__ import annotations

import random
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.broker.config.config_slices import FORM_4, FORM_5
from cometmq.broker.send.send_properties import prepare, prepare_batch
from cometmq.broker.send.stored_form import stored_form
from cometmq.model.messages.properties import parse_properties
from cometmq.model.messages.record import Record, decode_record

GOLDEN = Path(__file__).parent.parent / "golden"
SENT_ALONE = {"TopicNormal", "TopicSingle", "TopicZip", "TopicOrder", "TopicSql", "TopicRetry"}
BLANK_MAGIC = -875286124
CLUSTER = "GoldenCluster"


def records(version: str) -> Iterator[Record]:
    with tarfile.open(GOLDEN / f"store-{version}" / "store.tar.xz") as archive:
        for member in archive:
            if "/commitlog/" not in member.name or not member.isfile():
                continue
            file = archive.extractfile(member)
            assert file is not None
            data, at = file.read(), 0
            while at + 8 <= len(data):
                size, magic = struct.unpack_from(">ii", data, at)
                if size <= 0 or magic == BLANK_MAGIC:
                    break
                yield decode_record(data[at : at + size])
                at += size


def sent(record: Record, added: set[str]) -> list[str]:
    """The pairs that came, in some order; Java's clients send theirs in that of a hash table."""
    pairs = [pair for pair in record.properties_text.split("\x02") if pair]
    kept = [pair for pair in pairs if pair.partition("\x01")[0] not in added]
    random.Random(record.physical_offset).shuffle(kept)
    return kept


def test_messages_sent_alone_are_stored_as_by_5_byte_for_byte() -> None:
    form = stored_form(FORM_5, cluster=CLUSTER, region="DefaultRegion", is_traced=True)
    alone = [record for record in records("5.5.0") if record.topic in SENT_ALONE]
    assert len(alone) > 200
    for record in alone:
        pairs = sent(record, {"MSG_REGION", "TRACE_ON", "CLUSTER"})
        unique = next(pair for pair in pairs if pair.startswith("UNIQ_KEY"))
        pairs.remove(unique)
        for text in ("\x02".join([unique, *pairs]), "\x02".join([*pairs, unique]) + "\x02"):
            assert prepare(text, form).stored.decode() == record.properties_text


def test_messages_of_a_batch_are_stored_as_by_5_byte_for_byte() -> None:
    form = stored_form(FORM_5, cluster=CLUSTER, region="DefaultRegion", is_traced=True)
    texts = [
        record.properties_text.encode()
        for record in records("5.5.0")
        if record.topic == "TopicBatch"
    ]
    assert len(texts) == 30
    assert prepare_batch(texts, form).stored == texts


@pytest.mark.parametrize("wait", ["WAIT\x01true", "WAIT\x01false"])
def test_messages_sent_alone_have_the_properties_that_4_9_stores(wait: str) -> None:
    form = stored_form(FORM_4, cluster=CLUSTER, region="DefaultRegion", is_traced=True)
    alone = [record for record in records("4.9.7") if record.topic in SENT_ALONE]
    assert len(alone) > 200
    for record in alone:
        stored = prepare("\x02".join([*sent(record, {"CLUSTER"}), wait]), form).stored.decode()
        assert parse_properties(stored) == record.properties
