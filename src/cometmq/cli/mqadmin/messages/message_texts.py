"""Messages in the form of RocketMQ's tool, and as JSON. No I/O."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.texts import java, time_text
from cometmq.client import SendResult
from cometmq.client.helpers.message_lines import line_of
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

_LINE: Final = "%-20s %s"


def detail_lines(message: ReceivedMessage, *, body_path: str, offset_id: bool) -> list[str]:
    rows = [("OffsetID:", message.offset_id)] if offset_id else []
    rows += [
        ("Topic:", message.topic),
        ("Tags:", f"[{java(message.tags)}]"),
        ("Keys:", f"[{java(' '.join(message.keys) or None)}]"),
        ("Queue ID:", str(message.queue_id)),
        ("Queue Offset:", str(message.queue_offset)),
        ("CommitLog Offset:", str(message.physical_offset)),
        ("Reconsume Times:", str(message.reconsume_times)),
        ("Born Timestamp:", time_text(message.born_timestamp)),
        ("Store Timestamp:", time_text(message.store_timestamp)),
        ("Born Host:", message.born_host),
        ("Store Host:", message.store_host),
        ("System Flag:", str(message.sys_flag)),
        ("Properties:", java(message.properties)),
        ("Message Body Path:", body_path),
    ]
    return [_LINE % row for row in rows]


def body_line(message: ReceivedMessage, charset: str) -> str:
    return _LINE % ("Message Body:", decoded(message.body, charset))


def charset_of(text: str) -> str:
    """Raises UsageError for a character set that Python does not know."""
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise UsageError(f"expected a character set such as UTF-8 or GBK, got {text!r}") from None


def decoded(body: bytes, charset: str) -> str:
    return bytes(body).decode(charset, errors="replace")


def queue_text(queue: MessageQueue) -> str:
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
        f"queueId={queue.queue_id}]"
    )


def message_line(message: ReceivedMessage, charset: str, *, has_body: bool) -> str:
    """``MSGID: ... BODY: ...``: one line per message, as printMsg prints it."""
    body = decoded(message.body, charset) if has_body else "NOT PRINT BODY"
    return f"MSGID: {message.message_id} {_java_text(message)} BODY: {body}"


def _java_text(message: ReceivedMessage) -> str:
    numbers = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in bytes(message.body))
    return (
        f"MessageExt [brokerName={message.broker_name}, queueId={message.queue_id}, "
        f"storeSize={message.size_bytes}, queueOffset={message.queue_offset}, sysFlag={message.sys_flag}, "
        f"bornTimestamp={message.born_timestamp}, bornHost=/{message.born_host}, "
        f"storeTimestamp={message.store_timestamp}, storeHost=/{message.store_host}, "
        f"msgId={message.offset_id}, commitLogOffset={message.physical_offset}, bodyCRC={message.body_crc}, "
        f"reconsumeTimes={message.reconsume_times}, "
        f"preparedTransactionOffset={message.prepared_transaction_offset}, "
        f"toString()=Message{{topic='{message.topic}', flag={message.flag}, "
        f"properties={java(message.properties)}, body=[{numbers}], transactionId='null'}}]"
    )


def send_text(result: SendResult) -> str:
    return (
        f"SendResult [sendStatus={result.status}, msgId={result.message_id}, "
        f"offsetMsgId={result.offset_id}, messageQueue={queue_text(result.queue)}, "
        f"queueOffset={result.queue_offset}, recallHandle={java(result.recall_handle)}]"
    )


def document(message: ReceivedMessage) -> dict[str, Any]:
    """The same JSON as ``cometmq consume --json`` writes, and ids."""
    found: dict[str, Any] = msgspec.json.decode(line_of(message, is_json=True, is_base64=False))
    return {
        **found,
        "offset_id": message.offset_id,
        "born_ms": message.born_timestamp,
        "born_host": message.born_host,
        "store_host": message.store_host,
        "reconsume_times": message.reconsume_times,
    }


def documents(messages: Iterable[ReceivedMessage]) -> list[dict[str, Any]]:
    return [document(message) for message in messages]
