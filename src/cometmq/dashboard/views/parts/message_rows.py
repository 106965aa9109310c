"""Messages as rows and as wholes, their bodies decoded and masked."""

from __future__ import annotations

from cometmq.client.helpers.message_lines import line_of
from cometmq.dashboard.bodies.messages import MessageOfList, MessageView
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.model.messages.properties import REAL_TOPIC, RESERVED, RETRY_TOPIC
from cometmq.model.messages.received_message import ReceivedMessage


def row_of(message: ReceivedMessage, bodies: Bodies) -> MessageOfList:
    return MessageOfList(
        message_id=message.message_id,
        offset_id=message.offset_id,
        topic=message.topic,
        tags=message.tags or "",
        keys=list(message.keys),
        broker=message.broker_name,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        stored_ms=message.store_timestamp,
        born_ms=message.born_timestamp,
        born_host=message.born_host,
        body_bytes=len(message.body),
        retries=message.reconsume_times,
        preview=bodies.preview(bytes(message.body), schema_topic(message)),
    )


def view_of(message: ReceivedMessage, bodies: Bodies, wanted: str) -> MessageView:
    properties = bodies.masks.properties(message.properties)
    body = bodies.view(bytes(message.body), wanted, schema_topic(message))
    if message.body_error is not None:
        body.problem = message.body_error
    return MessageView(
        message=row_of(message, bodies),
        properties={key: value for key, value in properties.items() if key not in RESERVED},
        system_properties={key: value for key, value in properties.items() if key in RESERVED},
        flag=message.flag,
        store_host=message.store_host,
        physical_offset=message.physical_offset,
        body=body,
    )


def json_line(message: ReceivedMessage, bodies: Bodies) -> bytes:
    """As ``cometmq consume --json`` writes it and ``cometmq produce --json`` reads it."""
    if bodies.masks:
        message.properties.update(bodies.masks.properties(message.properties))
        message.body = bodies.masked(bytes(message.body), schema_topic(message))
    return line_of(message, is_json=True, is_base64=False) + b"\n"


def schema_topic(message: ReceivedMessage) -> str:
    """Whose schema its body has: of a retry, a dead letter or a delayed message the topic that it was sent to."""
    properties = message.properties
    return properties.get(RETRY_TOPIC) or properties.get(REAL_TOPIC) or message.topic
