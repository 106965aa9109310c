"""The sends of one turn of the loop: plain ones are appended with one write, and answered together.

A gathered kind of work (``remoting.turn``). The interpreter does the same step for many messages much faster than all
steps for one message after the other, because what a step needs is still in the processor's caches. With 64 connections
that send one message each, this gave 1.6 times the messages.

Before this on a message's way: ``send_processor``; next: ``store.message_store``, then ``send_answers``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from cometmq.broker.broker_stats import PutTally
from cometmq.broker.send.plain_sends import PlainSends, no_sends
from cometmq.broker.send.send_answers import Held, SendAnswers
from cometmq.broker.send.send_properties import SendProperties
from cometmq.native.send_run import SendRun
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import decode_bytes
from cometmq.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import AnswerError
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.store.log.new_messages import NewMessages, StoredMessages
from cometmq.store.message_store import MessageStore

_Sender = tuple[Connection, Command, PutTally, bool]

Handle = Callable[[Connection, Command], None]


class Batch(NamedTuple):
    """A batch that was checked: its messages are appended all or none."""

    connection: Connection
    command: Command
    new: NewMessages
    tally: PutTally
    is_held: bool
    """The reply is held until the messages are safe."""


class Finishing(NamedTuple):
    """What answers sends that are gathered, besides their connections."""

    dispatch: Handle
    """Handles a send that cannot be appended with other plain ones; it is added, or refused."""
    answer_error: AnswerError
    times: RequestTimes


_Part = Callable[[Finishing], None]
"""Appends and answers sends that belong together."""


class SendGroup:
    def __init__(self, store: MessageStore, answers: SendAnswers) -> None:
        self._store = store
        self._answers = answers
        self._senders: list[_Sender] = []
        self._new = _nothing_new()
        self._plain: PlainSends | None = None
        # What came before, in the order in which it came.
        self._before: list[_Part] = []

    def add(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
        properties: SendProperties,
        topic: str,
        queue_id: int,
        sys_flag: int,
        tally: PutTally,
        is_held: bool,
    ) -> None:
        """Have a checked message appended with the others.

        Args:
            is_held: the reply is held until the message is safe.
        """
        if self._plain is not None:
            self._end_part()
        self._senders.append((connection, command, tally, is_held))
        new = self._new
        new.topics.append(topic)
        new.queue_ids.append(queue_id)
        new.bodies.append(bytes(command.body))  # no copy: what came off the wire is bytes
        new.properties.append(properties.stored)
        new.tags_codes.append(properties.tags_code)
        new.keys += properties.keys
        assert new.key_counts is not None
        new.key_counts.append(len(properties.keys))
        new.flags.append(header.flag)
        new.sys_flags.append(sys_flag)
        new.born_timestamps.append(header.born_timestamp)
        new.born_hosts.append(connection.peer_host)
        new.reconsume_times.append(header.reconsume_times)
        new.prepared_transaction_offsets.append(0)

    def add_plain(
        self, connection: Connection, run: SendRun, start: int, stop: int, is_awaited: bool
    ) -> None:
        """The same for plain sends of a run."""
        if self._senders:
            self._end_part()
        if self._plain is None:
            self._plain = no_sends()
        self._plain.add(connection, run, start, stop, is_awaited)

    def add_batch(self, batch: Batch) -> None:
        """Have a batch appended after what was added before."""
        self._end_part()
        self._before.append(partial(self._finish_batch, batch))

    def finish(self, how: Finishing) -> None:
        """Append the messages that were added, and answer their senders."""
        self._end_part()
        parts, self._before = self._before, []
        for part in parts:
            part(how)

    def _end_part(self) -> None:
        if self._senders:
            self._before.append(partial(self._finish_each, self._senders, self._new))
            self._senders, self._new = [], _nothing_new()
        if self._plain is not None:
            self._before.append(partial(self._finish_plain, self._plain))
            self._plain = None

    def _finish_batch(self, batch: Batch, how: Finishing) -> None:
        answers = self._answers
        connection, command, new = batch.connection, batch.command, batch.new
        started = answers.monotonic()
        try:
            stored = self._store.append(new)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the sender gets an answer
            how.answer_error(connection, command, answers.refusal(error))
            return
        answers.put_took(answers.monotonic() - started)
        batch.tally.add_all(stored.sizes)
        reply = answers.batch_reply(command, new.queue_ids[0], stored)
        if batch.is_held:
            answers.hold_batch(connection, command, reply, stored.end_offset)
            return
        if not command.flag & FLAG_ONEWAY:
            connection.send(reply)
        if how.times.is_on:
            how.times.answered(command.code, 0)

    def _finish_plain(self, plain: PlainSends, how: Finishing) -> None:
        answers, times = self._answers, how.times
        started = answers.monotonic()
        try:
            end_offset = self._store.append_plain(plain)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, every sender gets an answer
            for connection, frame in plain.commands():
                how.answer_error(connection, decode_bytes(frame), answers.refusal(error))
            return
        if end_offset is None:
            for connection, frame in plain.commands():
                how.dispatch(connection, decode_bytes(frame))
            self.finish(how)
            return
        answers.put_took(answers.monotonic() - started)
        plain.count_puts()
        replies = answers.replies
        for connection, frames in plain.answers(
            replies.encoded_pieces, replies.id_prefix, 0, False
        ):
            connection.add_frame(frames)
        if held := plain.requests(True):
            answers.hold_plain(plain, held, end_offset, replies)
        if times.is_on:
            for code, count in plain.requests(False).items():
                times.answered(code, 0, count)

    def _finish_each(self, senders: list[_Sender], new: NewMessages, how: Finishing) -> None:
        answers = self._answers
        started = answers.monotonic()
        try:
            outcomes = self._store.append_each(new)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, every sender gets an answer
            outcomes = [error] * len(senders)
        answers.put_took(answers.monotonic() - started)
        if len(outcomes) == 1 and isinstance(outcomes[0], StoredMessages):
            self._answer(senders, new.queue_ids, outcomes[0], how.times)
            return
        for at, (sender, outcome) in enumerate(zip(senders, outcomes, strict=True)):
            if isinstance(outcome, StoredMessages):
                self._answer([sender], [new.queue_ids[at]], outcome, how.times)
            else:
                how.answer_error(sender[0], sender[1], answers.refusal(outcome))

    def _answer(
        self,
        senders: list[_Sender],
        queue_ids: list[int],
        stored: StoredMessages,
        times: RequestTimes,
    ) -> None:
        answers = self._answers
        replies = answers.replies
        held: list[Held] = []
        for (
            connection,
            command,
            tally,
            is_held,
        ), queue_id, place, size, queue_offset in zip(
            senders,
            queue_ids,
            stored.physical_offsets,
            stored.sizes,
            stored.queue_offsets,
            strict=True,
        ):
            tally.add(size)
            if is_held:
                held.append((connection, command, queue_id, place, queue_offset))
            elif not command.flag & FLAG_ONEWAY:
                connection.add_frame(
                    replies.frame(
                        0,
                        command.opaque,
                        command.encoding,
                        place,
                        queue_id,
                        queue_offset,
                    )
                )
        if held:
            answers.hold(held, stored.end_offset, replies)
        if times.is_on and len(held) < len(senders):
            # Nearly always all of one code, which is found out without a step of Python for each.
            codes = [sender[1].code for sender in senders if not sender[3]]
            first = codes.count(codes[0])
            times.answered(codes[0], 0, first)
            if first < len(codes):
                for code, count in Counter(codes).items():
                    if code != codes[0]:
                        times.answered(code, 0, count)


def _nothing_new() -> NewMessages:
    return NewMessages(
        topics=[],
        queue_ids=[],
        bodies=[],
        properties=[],
        tags_codes=[],
        keys=[],
        key_counts=[],
        flags=[],
        sys_flags=[],
        born_timestamps=[],
        born_hosts=[],
        reconsume_times=[],
        prepared_transaction_offsets=[],
    )
