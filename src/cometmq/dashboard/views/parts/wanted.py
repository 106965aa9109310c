"""What no broker can filter by: whether a message has a property, or a text in its body."""

from __future__ import annotations

from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.dashboard.decoding.body_text import Bodies
from cometmq.dashboard.problems import bad_request
from cometmq.dashboard.views.parts.message_rows import schema_topic
from cometmq.dashboard.views.parts.search import Wanted
from cometmq.model.messages.received_message import ReceivedMessage


def wanted(
    bodies: Bodies,
    *,
    having: str,
    text: str,
    begin_ms: int | None = None,
    end_ms: int | None = None,
) -> Wanted:
    """A body that is masked is searched as it is shown.

    Args:
        having: a property, as name=value; empty for any.

    Raises:
        Problem: that is no property.
    """
    name, equals, value = having.partition("=")
    if having and not equals:
        raise bad_request("expected name=value", field="property")
    content = text.encode()
    low, high = begin_ms or 0, TIME_MS_MAX if end_ms is None else end_ms

    def is_wanted(one: ReceivedMessage) -> bool:
        if not low <= one.store_timestamp <= high:
            return False
        if name and one.properties.get(name) != value:
            return False
        return not content or content in bodies.masked(bytes(one.body), schema_topic(one))

    return is_wanted
