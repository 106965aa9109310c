"""What the benchmarks of masters and slaves conclude from answers and from files."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.parts.logs import BLOCK_BYTES, first_difference
from benchmarks.parts.role_changes import Answers

from cometmq.client import SendResult, SendStatus
from cometmq.model.address import pack_host
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message_id import offset_id_text

FILE_BYTES = 2 * BLOCK_BYTES


def store(path: Path, content: bytes | bytearray) -> Path:
    """One whose log is this, in files of two blocks."""
    (path / "commitlog").mkdir(parents=True)
    for first in range(0, len(content), FILE_BYTES):
        (path / "commitlog" / f"{first:020}").write_bytes(content[first : first + FILE_BYTES])
    return path


@pytest.mark.parametrize("place", [0, BLOCK_BYTES - 1, FILE_BYTES + 7])
def test_one_byte_makes_logs_different(tmp_path: Path, place: int) -> None:
    content = bytearray(3 * BLOCK_BYTES)
    one = store(tmp_path / "one", content)
    content[place] = 1
    other = store(tmp_path / "other", content)
    assert first_difference(one, other, 0, len(content)) == place // BLOCK_BYTES * BLOCK_BYTES
    assert first_difference(one, other, 0, place) is None
    assert first_difference(one, other, place + 1, len(content)) is None


def sent(port: int, status: SendStatus = SendStatus.SEND_OK) -> SendResult:
    return SendResult(
        status=status,
        message_id="",
        queue=MessageQueue(broker_name="b", queue_id=0, topic="t"),
        queue_offset=0,
        offset_id=offset_id_text(pack_host("127.0.0.1", port), 8),
    )


def test_late_answers_of_the_former_master_do_not_count() -> None:
    answers = Answers()
    answers.look_out("127.0.0.1:1000")
    answers.answered(1, sent(1000), 0.0)
    answers.answered(2, sent(2000, SendStatus.FLUSH_SLAVE_TIMEOUT), 0.0)
    assert not answers.other_at
    answers.answered(3, sent(2000), 0.0)
    assert answers.other_at
    assert answers.acknowledged.keys() == {1, 3}
