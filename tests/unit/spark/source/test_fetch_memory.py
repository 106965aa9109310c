"""Replies that come while an earlier one is being read must not be written over it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cometmq.client.sync.bulk_client import BrokerLink
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.command import Command
from cometmq.remoting.large_body import LentMemory
from cometmq.spark.source.fetch import Fetcher
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import read_source_options

SIZE_BYTES = 1000
COUNT = 8


class PromptLink:
    """Every reply is there as soon as it is asked for, in the memory that was lent, if that is free."""

    def start(self, command: Command, memory: LentMemory | None = None) -> Command:
        offset = int((command.ext or {})["offset"])
        records = bytes([offset]) * SIZE_BYTES
        content = records + SIZE_BYTES.to_bytes(4, "big")
        room = memory.take(len(content)) if memory is not None else None
        body: Any = content
        if room is not None:
            room[:] = content
            body = room
        ext = {"nextBeginOffset": str(offset + 1), "minOffset": "0", "maxOffset": str(COUNT)}
        return command.reply(0, ext={**ext, "count": "1"}, body=body)

    def finish(self, reply: Command) -> Command:
        return reply


def test_a_reply_stays_as_it_is_until_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    options = read_source_options({"nameServers": "127.0.0.1:1", "topic": "T"})
    fetcher = Fetcher(options)
    monkeypatch.setattr(fetcher, "_link", lambda address: cast(BrokerLink, PromptLink()))
    wanted = Range(MessageQueue("T", 0, "b"), 0, COUNT)
    try:
        found = [bytes(pulled.records) for pulled in fetcher._bulk_pulls("127.0.0.1:1", wanted)]
    finally:
        fetcher.close()
    assert found == [bytes([offset]) * SIZE_BYTES for offset in range(COUNT)]
