"""How many messages go into one call of a listener. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.model.messages.received_message import ReceivedMessage


def call_size(messages: Sequence[ReceivedMessage], start: int, count_max: int) -> int:
    """Of the messages from ``start`` on: up to ``count_max``, but one that cannot be read is alone in its call.

    So it fails alone, and the listener gets those before it and behind it.
    """
    end = min(start + count_max, len(messages))
    for at in range(start, end):
        if messages[at].body_error is not None:
            return max(at - start, 1)
    return end - start
