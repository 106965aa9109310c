"""Sending to a broker that may be busy: a cold JVM on a loaded machine often is.

"System busy" means refused before it was stored, so the same message may be sent again without becoming two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from cometmq.client.aio.send.producer import Producer, SendResult
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.protocol.reply_errors import SystemBusy

CALL_SECONDS = 15.0
WAIT_SECONDS_MAX = 60.0
PAUSE_SECONDS = 0.1


async def send(
    producer: Producer, messages: Message | Sequence[Message], queue: MessageQueue | None = None
) -> SendResult:
    """Send one message, or several as a batch, until the broker has time for it."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            if isinstance(messages, Message):
                return await producer.send(messages, queue=queue, timeout=CALL_SECONDS)
            return await producer.send_batch(messages, queue=queue, timeout=CALL_SECONDS)
        except SystemBusy:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
