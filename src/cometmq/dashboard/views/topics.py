"""Topics: list, look, create, change, delete, send."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Final

import msgspec

from cometmq.admin.errors import NoSuchName
from cometmq.admin.fan_out import Listing
from cometmq.admin.target import Target
from cometmq.admin.topics.topics import new_topic
from cometmq.client.errors import NoRoute
from cometmq.dashboard.bodies.common import Changed, Failure, Page, Place, SiteQuery
from cometmq.dashboard.bodies.topics import (
    ChangedTopic,
    Confirmed,
    GroupOfTopic,
    NewMessage,
    NewTopic,
    QueueOfTopic,
    RouteOfTopic,
    Sent,
    TopicAtBroker,
    TopicOfList,
    TopicsQuery,
    TopicView,
)
from cometmq.dashboard.call import Call
from cometmq.dashboard.problems import bad_request, not_found
from cometmq.dashboard.views.parts.changes import changed
from cometmq.dashboard.views.parts.gaps import gaps_of
from cometmq.dashboard.views.parts.lists import matches, page_of_rows
from cometmq.dashboard.views.parts.perms import bits_of, word_of
from cometmq.dashboard.watch.known import Fill
from cometmq.dashboard.watch.site import Site
from cometmq.dashboard.watch.snapshot import NORMAL, Snapshot, TopicState
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.names import check_topic
from cometmq.model.topic import TopicConfig

MESSAGE_TYPE: Final = "message.type"
"""The attribute of RocketMQ 5."""
MIXED: Final = "mixed"


async def topics(call: Call[TopicsQuery, None]) -> Page[TopicOfList]:
    site, query = call.site, call.query
    snapshot = await site.seen()
    rows = [
        row
        for row in site.once("topics", lambda: _rows(site, snapshot))
        if query.kind in ("", row.kind) and matches(row.name, query.q)
    ]
    page = page_of_rows(rows, query, snapshot, sort="name", kind=TopicOfList)
    for row in page.rows:
        row.trend = site.trends.of(f"topic:{row.name}:tps")
    return page


async def topic(call: Call[SiteQuery, None]) -> TopicView:
    site, name = call.site, call.names["topic"]
    snapshot = await site.seen()
    state = snapshot.topics.get(name)
    try:
        status = await call.admin.topics.status(name)
        route = await call.admin.topics.route(name)
        groups = await call.admin.topics.groups(name)
    except NoRoute:
        if state is None or not state.by_broker:
            raise not_found("topic", name) from None
        raise
    if status.is_complete:
        site.status.put(name, Fill.of(status))
    state = state or TopicState()
    clusters = {one.broker_name: one.cluster for one in route.broker_datas}
    return TopicView(
        as_of_ms=call.desk.clock.wall_ms(),
        incomplete=gaps_of({**status.failed, **groups.failed}, snapshot),
        name=name,
        kind=snapshot.kind_of(name),
        message_type=_message_type(state.by_broker),
        definitions=[
            TopicAtBroker(
                broker=broker,
                cluster=clusters.get(broker, ""),
                read_queues=one.read_queue_nums,
                write_queues=one.write_queue_nums,
                perm=word_of(one.perm),
                order=one.order,
                attributes=one.attributes or {},
            )
            for broker, one in state.by_broker.items()
        ],
        route=[
            RouteOfTopic(
                broker=data.broker_name,
                cluster=data.cluster,
                addresses={str(number): text for number, text in data.broker_addrs.items()},
                read_queues=queue.read_queue_nums if queue else 0,
                write_queues=queue.write_queue_nums if queue else 0,
                perm=word_of(queue.perm) if queue else "",
            )
            for data in route.broker_datas
            for queue in [
                next((q for q in route.queue_datas if q.broker_name == data.broker_name), None)
            ]
        ],
        queues=[
            QueueOfTopic(
                broker=row.queue.broker_name,
                queue_id=row.queue.queue_id,
                min_offset=row.min_offset,
                max_offset=row.max_offset,
                updated_ms=row.updated_ms,
            )
            for row in status.queues
        ],
        groups=_groups(site, name, groups),
        messages=status.message_count,
        put_tps=status.put_tps if status.put_tps is not None else site.rates.get(name),
        definitions_differ=_differ(state.by_broker),
    )


async def create_topic(call: Call[SiteQuery, NewTopic]) -> Changed:
    given = call.body
    check_topic(given.name)
    if call.site.snapshot.kind_of(given.name) != NORMAL:
        raise bad_request(f"{given.name!r} is a name of the system's own topics", field="name")
    attributes = {MESSAGE_TYPE: given.message_type} if given.message_type else None
    config = new_topic(
        given.name,
        read_queues=given.read_queues,
        write_queues=given.write_queues,
        perm=bits_of(given.perm),
        order=given.order,
        attributes=attributes,
    )
    target = _target(given.cluster, given.broker)
    done = await call.admin.topics.create(config, target)
    return changed(done, f"created {given.name}")


async def change_topic(call: Call[SiteQuery, ChangedTopic]) -> Changed:
    """Each broker keeps what is not given as it has it."""
    name, given = call.names["topic"], call.body
    values = {
        "read_queue_nums": given.read_queues,
        "write_queue_nums": given.write_queues,
        "perm": None if given.perm is None else bits_of(given.perm),
        "order": given.order,
    }
    changes = {key: value for key, value in values.items() if value is not None}
    if not changes:
        raise bad_request("expected something to change: read_queues, write_queues, perm or order")
    async with call.site.changing:
        row = await call.admin.topics.get(name)
        places = await call.admin.brokers.places(_target(given.cluster, given.broker))
        answer = Changed(done=[])
        for place in places:
            config = row.by_broker.get(place.broker_name)
            if config is None:
                continue
            # Attributes are sent as changes; none are wanted.
            wanted = msgspec.structs.replace(config, **changes, attributes=None)
            told = await call.admin.topics.create(wanted, Target(address=place.address))
            part = changed(told, "changed " + ", ".join(changes))
            answer.done += [Place(where=place.broker_name, what=one.what) for one in part.done]
            answer.failed += [
                Failure(where=place.broker_name, problem=one.problem) for one in part.failed
            ]
    if not answer.done and not answer.failed:
        raise NoSuchName(f"topic {name!r} is at none of these brokers")
    return answer


async def delete_topic(call: Call[SiteQuery, Confirmed]) -> Changed:
    name = call.names["topic"]
    call.confirmed(call.body.confirm, name)
    done = await call.admin.topics.delete(name, call.body.cluster or None)
    return changed(done, f"deleted {name}")


async def send(call: Call[SiteQuery, NewMessage]) -> Sent:
    given, name = call.body, call.names["topic"]
    if given.delay_ms and given.delay_level:
        raise bad_request("expected delay_ms or delay_level, got both", field="delay_ms")
    message = Message(
        topic=name,
        body=_body(given),
        tags=given.tags or None,
        keys=given.keys,
        properties=given.properties,
        delay_level=given.delay_level,
        delay_ms=given.delay_ms or None,
    )
    queue = None
    if given.broker or given.queue_id is not None:
        if not given.broker or given.queue_id is None:
            raise bad_request("expected broker and queue_id together", field="queue_id")
        queue = MessageQueue(given.broker, given.queue_id, name)
    result = await call.admin.messages.send(message, queue=queue)
    return Sent(
        status=result.status,
        message_id=result.message_id,
        offset_id=result.offset_id,
        broker=result.queue.broker_name,
        queue_id=result.queue.queue_id,
        queue_offset=result.queue_offset,
    )


def _rows(site: Site, snapshot: Snapshot) -> list[TopicOfList]:
    return [_row(site, name, state) for name, state in snapshot.topics.items() if state.by_broker]


def _row(site: Site, name: str, state: TopicState) -> TopicOfList:
    found = site.status.get(name)
    status = found.value if found else None
    perms = {word_of(one.perm) for one in state.by_broker.values()}
    return TopicOfList(
        name=name,
        kind=site.snapshot.kind_of(name),
        message_type=_message_type(state.by_broker),
        brokers=list(state.by_broker),
        read_queues=sum(one.read_queue_nums for one in state.by_broker.values()),
        write_queues=sum(one.write_queue_nums for one in state.by_broker.values()),
        perm=perms.pop() if len(perms) == 1 else MIXED,
        consumers=len(state.consumers),
        messages=status.message_count if status else None,
        updated_ms=status.updated_ms if status else None,
        tps=site.rates.get(name),
        trend=[],
    )


def _groups(site: Site, topic: str, listing: Listing[str]) -> list[GroupOfTopic]:
    rows = []
    snapshot = site.snapshot
    for name in listing:
        state = snapshot.groups.get(name)
        found = site.members.get(name)
        lag = state.topics.get(topic) if state else None
        rows.append(
            GroupOfTopic(
                name=name,
                lag=lag,
                lag_ms=site.lag_ages.get(name) if lag else None,
                members=found.value.count if found else None,
            )
        )
    return rows


def _target(cluster: str, broker: str) -> Target:
    if cluster and broker:
        raise bad_request("expected a cluster or a broker, got both", field="broker")
    return Target(cluster=cluster or None, broker=broker or None)


def _message_type(by_broker: Mapping[str, TopicConfig]) -> str:
    for one in by_broker.values():
        for key, value in (one.attributes or {}).items():
            if key.lstrip("+") == MESSAGE_TYPE:
                return value
    return ""


def _differ(by_broker: Mapping[str, TopicConfig]) -> bool:
    shapes = {(one.perm, one.read_queue_nums, one.write_queue_nums) for one in by_broker.values()}
    return len(shapes) > 1


def _body(given: NewMessage) -> bytes:
    if given.encoding == "text":
        return given.body.encode()
    try:
        return b64decode(given.body, validate=True)
    except ValueError as error:  # binascii.Error among them
        raise bad_request(f"the body is no base64: {error}", field="body") from None


HANDLERS: Final = {
    "topics": topics,
    "create_topic": create_topic,
    "topic": topic,
    "change_topic": change_topic,
    "delete_topic": delete_topic,
    "send": send,
}
