"""Dead letters: messages that a group gave up on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from cometmq.admin.calls import Calls
from cometmq.admin.messages.messages import Messages
from cometmq.base.errors import CometError
from cometmq.client.core.send.send_result import SendResult
from cometmq.client.errors import NoRoute
from cometmq.model.messages.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import check_group, dlq_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter; ``message`` is as it is stored, in the topic of dead letters."""

    message: ReceivedMessage

    @property
    def origin_topic(self) -> str:
        """The topic it came from."""
        return self.message.properties.get(RETRY_TOPIC, "")

    @property
    def origin_id(self) -> str:
        """The offset id of the message's first copy."""
        return self.message.properties.get(ORIGIN_MESSAGE_ID, "")

    @property
    def message_id(self) -> str:
        """The id from its producer."""
        return self.message.message_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ResentLetters:
    """What was sent again, and what was not: by the offset id of the dead letter."""

    done: dict[str, SendResult]
    failed: dict[str, CometError]

    @property
    def is_complete(self) -> bool:
        return not self.failed


class DeadLetters:
    """``admin.dead_letters``"""

    def __init__(self, calls: Calls, messages: Messages) -> None:
        self._calls = calls
        self._messages = messages

    async def count(self, group: str) -> int:
        """How many dead letters of a group there are."""
        check_group(group)
        try:
            bounds = await self._messages.ranges(dlq_topic(group))
        except NoRoute:
            return 0
        return sum(one.end - one.first for one in bounds.values())

    async def scan(
        self, group: str, *, begin_ms: int | None = None, end_ms: int | None = None
    ) -> AsyncIterator[DeadLetter]:
        """The dead letters of a group, or those that were given up between two times; none if it never had one.

        Raises:
            CometError: a broker did not answer.
        """
        check_group(group)
        try:
            letters = self._messages.scan(dlq_topic(group), begin_ms=begin_ms, end_ms=end_ms)
            async for message in letters:
                yield DeadLetter(message=message)
        except NoRoute:
            return

    async def resend(self, group: str, letters: Iterable[DeadLetter]) -> ResentLetters:
        """Deliver dead letters to their group again, and to no other; their retries begin anew.

        The dead letters stay where they are until they expire: who resends twice, delivers twice.

        Raises:
            NeverOnline: no consumer of the group ever connected.
        """
        done: dict[str, SendResult] = {}
        failed: dict[str, CometError] = {}
        for letter in letters:
            key = letter.message.offset_id
            try:
                done[key] = await self._messages.resend(letter.message, group)
            except NoRoute:
                raise
            except CometError as error:
                failed[key] = error
        return ResentLetters(done=done, failed=failed)
