"""Why a group is behind: what its positions, members and definitions have in common with known causes. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cometmq.dashboard.bodies.common import Gap, Note
from cometmq.dashboard.bodies.groups import QueueOfGroup
from cometmq.dashboard.watch.notes import ERROR, INFO, WARNING, note, page_of
from cometmq.dashboard.watch.snapshot import GroupState, TopicState
from cometmq.model.names import RETRY_PREFIX
from cometmq.protocol.bodies.connection import ConsumerConnection
from cometmq.protocol.bodies.running import ConsumerRunningInfo

READ: Final = 4
IDLE_MS: Final = 60_000
SLOW_MS: Final = 100.0
FEW_LAG: Final = 1000


def why_stuck(
    *,
    group: str,
    queues: Sequence[QueueOfGroup],
    online: ConsumerConnection | None,
    running: Mapping[str, ConsumerRunningInfo],
    state: GroupState,
    topics: Mapping[str, TopicState],
    failed: Sequence[Gap],
    now_ms: int,
) -> list[Note]:
    """Most likely first; nothing if the group is not behind."""
    behind = [queue for queue in queues if queue.lag > 0]
    if not behind:
        return []
    page = page_of("groups", group)
    found: list[Note] = []
    lags: dict[str, int] = defaultdict(int)
    for queue in behind:
        lags[queue.topic] += queue.lag
    for broker, config in state.by_broker.items():
        if not config.consume_enable and any(one.broker == broker for one in behind):
            found.append(note(ERROR, "stuck_disabled", page, now_ms, broker=broker))
    for topic in lags:
        known = topics.get(topic)
        for broker, definition in (known.by_broker if known else {}).items():
            if not definition.perm & READ:
                at = page_of("topics", topic)
                found.append(
                    note(ERROR, "stuck_not_readable", at, now_ms, topic=topic, broker=broker)
                )
    if online is None or not online.connection_set:
        found.append(note(ERROR, "stuck_nobody", page, now_ms))
    else:
        found += _of_members(page, lags, behind, online, running, now_ms)
    for gap in failed:
        found.append(note(INFO, "stuck_unknown", "#/cluster", now_ms, broker=gap.server))
    return found


def _of_members(
    page: str,
    lags: Mapping[str, int],
    behind: Sequence[QueueOfGroup],
    online: ConsumerConnection,
    running: Mapping[str, ConsumerRunningInfo],
    now_ms: int,
) -> Iterator[Note]:
    for one in online.subscription_mismatch or []:
        yield note(WARNING, "stuck_mismatch", page, now_ms, topic=one.topic)
    for topic, lag in lags.items():
        if topic not in online.subscription_table and not topic.startswith(RETRY_PREFIX):
            yield note(WARNING, "stuck_not_subscribed", page, now_ms, topic=topic, lag=lag)
    everybody_told = len(running) == len(online.connection_set)
    ownerless: dict[str, list[QueueOfGroup]] = defaultdict(list)
    for queue in behind:
        if queue.owner is None and queue.topic in online.subscription_table and everybody_told:
            ownerless[queue.topic].append(queue)
    for topic, queues in ownerless.items():
        lag = sum(queue.lag for queue in queues)
        yield note(
            WARNING, "stuck_no_owner", page, now_ms, topic=topic, queues=len(queues), lag=lag
        )
    for queue in behind:
        info = running.get(queue.owner or "")
        if info is None:
            continue
        for held, state in info.mq_table.items():
            is_it = (held.topic, held.broker_name, held.queue_id) == (
                queue.topic,
                queue.broker,
                queue.queue_id,
            )
            idle_ms = now_ms - state.last_consume_timestamp
            if is_it and state.last_consume_timestamp and idle_ms > IDLE_MS:
                yield note(
                    ERROR,
                    "stuck_queue",
                    page,
                    now_ms - idle_ms,
                    topic=queue.topic,
                    broker=queue.broker,
                    queue_id=queue.queue_id,
                    idle_ms=idle_ms,
                    client=queue.owner,
                )
    yield from _of_rates(page, lags, running, now_ms)
    members = len(online.connection_set)
    if sum(lags.values()) >= FEW_LAG and members < len(behind):
        yield note(
            INFO,
            "stuck_few",
            page,
            now_ms,
            members=members,
            queues=len(behind),
            lag=sum(lags.values()),
        )


def _of_rates(
    page: str, lags: Mapping[str, int], running: Mapping[str, ConsumerRunningInfo], now_ms: int
) -> Iterator[Note]:
    for topic in lags:
        rates = [
            info.status_table[topic] for info in running.values() if topic in info.status_table
        ]
        failed = sum(rate.consume_failed_tps for rate in rates)
        slowest = max((rate.consume_rt for rate in rates), default=0.0)
        if failed > 0:
            yield note(
                WARNING, "stuck_failing", page, now_ms, topic=topic, failed_tps=round(failed, 2)
            )
        if slowest >= SLOW_MS:
            yield note(WARNING, "stuck_slow", page, now_ms, topic=topic, consume_ms=round(slowest))
