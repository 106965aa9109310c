"""Plain sends that came in one turn of the loop: appended with one write, and answered together.

The interpreter does the same work for many messages much faster than one message after the other, because what it
needs for a step is still in the processor's caches. Measured with 64 connections that send one message each: 1.6 times
the messages.
Before this on a message's way: ``send``; next: ``store.message_store``, then ``send_answers``.
"""

from __future__ import annotations

from collections.abc import Callable

from cometmq.broker.processors.send_answers import SendAnswers
from cometmq.broker.stats import Tally
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting.connection import Connection
from cometmq.store.message_store import MessageStore
from cometmq.store.put import NewMessage

AnswerError = Callable[[Connection, Command, Exception], None]


class SendGroup:
    def __init__(self, store: MessageStore, answers: SendAnswers) -> None:
        self._store = store
        self._answers = answers
        self._sends: list[tuple[Connection, Command, NewMessage, Tally, bool, bool]] = []

    def join(
        self,
        connection: Connection,
        command: Command,
        message: NewMessage,
        tally: Tally,
        *,
        waits: bool,
        is_held: bool,
    ) -> None:
        self._sends.append((connection, command, message, tally, waits, is_held))

    def finish(self, answer_error: AnswerError) -> None:
        """Append what has joined, and answer it."""
        sends, self._sends = self._sends, []
        if not sends:
            return
        answers = self._answers
        started = answers.monotonic()
        try:
            outcomes = self._store.put_each([send[2] for send in sends])
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody waits for an answer in vain
            outcomes = [error] * len(sends)
        answers.put_took(answers.monotonic() - started)
        stored_code, replies = answers.stored_code, answers.replies
        for (connection, command, message, tally, waits, is_held), stored in zip(
            sends, outcomes, strict=True
        ):
            if isinstance(stored, Exception):
                answer_error(connection, command, answers.refusal(stored))
                continue
            tally.count += 1
            tally.size_bytes += stored.size_bytes
            if is_held:
                answers.hold(connection, command, message.queue_id, stored, replies)
            elif not command.flag & FLAG_ONEWAY:
                connection.add_frame(
                    replies.frame(
                        stored_code if waits else 0,
                        command.opaque,
                        command.encoding,
                        stored.physical_offset,
                        message.queue_id,
                        stored.queue_offset,
                    )
                )
