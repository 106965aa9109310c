"""Bodies of messages as files, where RocketMQ's tool saves them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from cometmq.model.messages.received_message import ReceivedMessage

FOLDER: Final = Path("/tmp/rocketmq/msgbodys")
PRIVATE: Final = 0o600


def save_body(message: ReceivedMessage) -> str:
    """The path of the file with the body, which only its owner may read; or why it was not saved.

    Others may write to the folder, and producers choose ids: no link is followed, and no path is made of an id.
    """
    name = re.sub(r"[^0-9A-Za-z]", "_", message.message_id or message.offset_id)
    path = FOLDER / name
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with open(path, "wb", opener=lambda file, _: os.open(file, flags, PRIVATE)) as file:
            file.write(message.body)
    except OSError as error:
        return f"not saved: {error}"
    return str(path)
