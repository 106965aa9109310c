"""Splits messages into batches that a broker accepts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.client.core.send.prepare import property_text
from cometmq.model.messages.message import Message

_ELEMENT_BYTES: Final = 22
# As long as the longest id, that of an IPv6 client; the real one is created when the batch is sent.
_LONGEST_ID: Final = "0" * 56


def split_batch(
    messages: Iterable[Message], *, bytes_max: int, count_max: int
) -> Iterator[list[Message]]:
    """The messages in order, as lists that can each be sent with one ``send_batch``.

    A new list begins where the topic or ``wait_store_ok`` changes, and around a message with a delay, which must be
    sent alone.

    Raises:
        UsageError: a message that is too large for any batch, or that has invalid properties.
    """
    batch: list[Message] = []
    batch_bytes = 0
    for message in messages:
        element_bytes = (
            _ELEMENT_BYTES
            + len(message.body)
            + len(property_text(message, _LONGEST_ID).encode("utf-8", "replace"))
        )
        if element_bytes > bytes_max:
            raise UsageError(
                f"message to {message.topic!r} takes {element_bytes} bytes in a batch, "
                f"at most {bytes_max}"
            )
        if batch and (
            batch_bytes + element_bytes > bytes_max
            or len(batch) >= count_max
            or not _fits_beside(batch[-1], message)
        ):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(message)
        batch_bytes += element_bytes
    if batch:
        yield batch


def travels_alone(message: Message) -> bool:
    return message.is_delayed or bool(message.internal_properties)


def _fits_beside(last: Message, message: Message) -> bool:
    return (
        last.topic == message.topic
        and last.wait_store_ok is message.wait_store_ok
        and not travels_alone(last)
        and not travels_alone(message)
    )
