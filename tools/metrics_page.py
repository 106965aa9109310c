"""Writes docs/reference/metrics.md: the metrics that the servers have, and how they differ from RocketMQ's.

python -m tools.metrics_page          # write the page
python -m tools.metrics_page --check  # exit 1 if the page is out of date
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from cometmq.broker.metrics.creation_families import CreationFamilies
from cometmq.broker.metrics.metrics_room import sources
from cometmq.broker.metrics.replication_families import ReplicationFamilies
from cometmq.client.helpers.metrics import ClientMetrics
from cometmq.controller.liveness import Liveness
from cometmq.controller.metrics.controller_metrics import ControllerMetrics
from cometmq.monitor.family import Family
from cometmq.monitor.loop_lag import LoopLag
from cometmq.namesrv.namesrv_metrics import namesrv_source
from cometmq.namesrv.route_table import RouteTable
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.spark.pipeline_metrics import pipeline_families
from cometmq.testing.memory_broker import MemoryBroker

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "metrics.md"

DIFFERENCES: Final[dict[str, tuple[bool, str]]] = {
    "rocketmq_pop_buffer_scan_time_consume_milliseconds": (
        True,
        "there is no buffer that is scanned: what was popped is kept in one table in memory",
    ),
    "rocketmq_proxy_up": (True, "there is no proxy"),
    "rocketmq_message_size": (
        False,
        "each message is counted with its own size; RocketMQ counts each put with its average",
    ),
    "rocketmq_messages_in_total": (
        False,
        "a committed transaction counts for its topic, too, as *transaction*; in RocketMQ only its half message does",
    ),
    "rocketmq_consumer_lag_messages": (
        False,
        "groups that are offline are shown as long as they have positions, and retry topics of push consumers under "
        "their own name; RocketMQ shows connected groups, without retry topics. Slaves show none, since their copies "
        "would count twice. The other four about lag likewise. "
        "Messages that a filter will skip count; RocketMQ estimates them away if told to",
    ),
    "rocketmq_rpc_latency_milliseconds": (
        False,
        "what one turn of the event loop answered took as long as that turn; `result` is always *success*, since no "
        "answer is given up while its connection is open",
    ),
    "rocketmq_processor_watermark": (
        False,
        "requests are handled as they come and wait in no queue: only *send* can be above 0, with the sends whose "
        "answer waits for disk or slaves",
    ),
    "rocketmq_timing_messages": (
        False,
        "one series, of the timer's own topic, with all that wait: the index does not know where a message goes",
    ),
    "rocketmq_timer_message_snapshot": (
        False,
        "to the second for what is due within ten minutes, to ten minutes beyond",
    ),
    "rocketmq_timer_enqueue_lag": (
        False,
        "always 0, as is the latency: a message is in the index as soon as it is stored",
    ),
    "rocketmq_pop_revive_in_message_total": (
        False,
        "counts every check-point and acknowledgement; RocketMQ keeps most of them in a buffer and out of this count",
    ),
    "rocketmq_pop_checkpoint_buffer_size": (
        False,
        "check-points whose messages are out; `rocketmq_pop_offset_buffer_size` positions that are not on the disk yet",
    ),
    "rocketmq_send_to_dlq_messages_total": (
        False,
        "`topic` is where the message was sent to, also for popped messages; RocketMQ may name their retry topic",
    ),
    "rocketmq_consumer_connections": (
        False,
        "`language` is one that RocketMQ knows, or *other*",
    ),
}
"""By name on RocketMQ's page: whether it is missing here, and what is different."""

MEANINGS: Final = {
    "rocketmq_messages_in_total": "messages stored in each topic; no retries and dead letters",
    "rocketmq_throughput_in_total": "their bytes, as records",
    "rocketmq_message_size": "their sizes",
    "rocketmq_messages_out_total": "messages delivered to each group, by pull and pop",
    "rocketmq_throughput_out_total": "their bytes",
    "rocketmq_topic_create_execution_time_milliseconds": "time of creating a topic for an operator",
    "rocketmq_consumer_group_create_execution_time_milliseconds": "time of creating a group for an operator",
    "rocketmq_send_to_dlq_messages_total": "messages that became dead letters",
    "rocketmq_consumer_lag_messages": "messages that are not committed: in flight and ready",
    "rocketmq_consumer_inflight_messages": "messages pulled or popped, and not committed or acknowledged",
    "rocketmq_consumer_ready_messages": "messages not pulled yet",
    "rocketmq_consumer_lag_latency_milliseconds": "age of the first message that is not committed",
    "rocketmq_consumer_queueing_latency_milliseconds": "age of the first message that is not pulled",
    "rocketmq_producer_connections": "connected producers",
    "rocketmq_consumer_connections": "connected consumers",
    "rocketmq_rpc_latency_milliseconds": "how long requests took, from their arrival to the answer",
    "rocketmq_processor_watermark": "requests that wait, by kind",
    "rocketmq_broker_permission": "4 read, 2 write, 6 both",
    "rocketmq_topic_number": "topics, the system's among them",
    "rocketmq_consumer_group_number": "groups, the system's among them",
    "rocketmq_commit_messages_total": "transactions committed",
    "rocketmq_rollback_messages_total": "transactions rolled back",
    "rocketmq_half_messages": "transactions that nobody has ended",
    "rocketmq_finish_message_latency_milliseconds": "age of a transaction at its end, in **seconds** despite the name",
    "rocketmq_storage_size_bytes": "used bytes of the disk partition with the log",
    "rocketmq_storage_flush_behind_bytes": "bytes of the log that are not on disk yet",
    "rocketmq_storage_dispatch_behind_bytes": "bytes of the log that are in no queue yet",
    "rocketmq_storage_message_reserve_time_milliseconds": "age of the oldest message",
    "rocketmq_timer_enqueue_lag": "timed messages that are not in the index yet",
    "rocketmq_timer_enqueue_latency_milliseconds": "how late that is",
    "rocketmq_timer_dequeue_lag": "timed messages that are due and not delivered",
    "rocketmq_timer_dequeue_latency_milliseconds": "how late the first of them is",
    "rocketmq_timer_enqueue_total": "timed messages taken, by where they go",
    "rocketmq_timer_dequeue_total": "timed messages delivered",
    "rocketmq_timing_messages": "timed messages that wait, recalls among them",
    "rocketmq_timer_message_snapshot": "those of them due within so many seconds",
    "rocketmq_delay_message_latency_seconds": "how long timed messages were to wait",
    "rocketmq_pop_revive_in_message_total": "check-points (CK) and acknowledgements (ACK) written",
    "rocketmq_pop_revive_out_message_total": "check-points whose messages were not acknowledged in time",
    "rocketmq_pop_revive_retry_messages_total": "popped messages put into a retry topic",
    "rocketmq_pop_revive_lag_milliseconds": "overdue check-points: **messages**, despite the name",
    "rocketmq_pop_revive_latency_milliseconds": "how long the first of them has been due",
    "rocketmq_pop_offset_buffer_size": "positions of pops that are not safe on the disk yet",
    "rocketmq_pop_checkpoint_buffer_size": "check-points whose messages are out",
    "role": "3 leads, 2 follows another controller",
    "active_broker_num": "brokers of each group that are alive",
    "request_total": "requests, by whether they succeeded",
    "request_latency_us": "how long they took, in microseconds",
    "election_total": "elections held, by result",
    "rocketmq_send_cost_time": "how long sends took",
    "rocketmq_delivery_latency": "from the store to this consumer",
    "rocketmq_process_time": "how long the listener took",
}

HEAD: Final = """# Metrics

Generated by `tools/metrics_page.py` from the software; do not edit. [How to look at them](../howto/monitoring.md), and
[why they are made as they are](../decisions/0039-metrics-and-health.md).

Names that begin with `rocketmq_` are RocketMQ 5.5.0's, with its types, labels and buckets; those that begin with
`cometmq_` are ours. On a page every series also has the labels `otel_scope_name`, `node_type` and `node_id`, at a
broker `cluster`, at a controller `address`, `group` and `peer_id`, and those of `metricsLabel`. A series appears with
its first value. No metric has more series than `metricsOtelCardinalityLimit`.
"""

COMPARISON: Final = """
## Beside RocketMQ 5.5.0

A test compares the page of a busy broker with a capture of RocketMQ's, name by name and label by label. All names,
types, labels and buckets are the same but for these:

| name | difference |
| --- | --- |"""

CONTROLLER_NOTE: Final = """
RocketMQ's `dledger_disk_usage`, `dledger_op_total` and `dledger_op_latency` are missing: there is no DLedger.
"""


def page() -> str:
    return "\n".join(
        (
            HEAD,
            "## Broker\n",
            *_table(broker_families()),
            COMPARISON,
            *(
                f"| `{name}` | {'missing: ' if is_missing else ''}{reason} |"
                for name, (is_missing, reason) in sorted(DIFFERENCES.items())
            ),
            "\n## Name server\n",
            "RocketMQ's has no metrics.\n",
            *_table(namesrv_families()),
            "\n## Controller\n",
            *_table(controller_families()),
            CONTROLLER_NOTE,
            "## Client\n",
            "Of the [client helper](../howto/monitoring.md#clients), under the names of RocketMQ's gRPC clients.\n",
            *_table(ClientMetrics().families),
            "\n## Pipeline\n",
            "Of `cometmq pipeline run --metrics-port`.\n",
            *_table(pipeline_families(list)),
            "",
        )
    )


def broker_families() -> list[Family]:
    broker = MemoryBroker()
    replication = cast(Any, SimpleNamespace(link=None))
    found = [
        family
        for source in sources(broker.core, broker.rooms, broker.ports, CreationFamilies())
        for family in source.families
    ]
    return [
        *found,
        *ReplicationFamilies(broker.core, replication, cast(Any, None)).families,
        *LoopLag().families,
    ]


def namesrv_families() -> list[Family]:
    source = namesrv_source(RouteTable(), RequestTimes(), Reached(), lambda: 0)
    return [*source.families, *LoopLag().families]


def controller_families() -> list[Family]:
    metrics = ControllerMetrics(
        store=cast(Any, None),
        liveness=Liveness(0.0),
        roster=cast(Any, None),
        times=RequestTimes(),
        reached=Reached(),
        elections=Counter(),
        now=lambda: 0.0,
    )
    return [*metrics.source.families, *LoopLag().families]


def _table(families: Iterable[Family]) -> Iterable[str]:
    yield "| name | type | labels | value |"
    yield "| --- | --- | --- | --- |"
    for family in sorted(families, key=lambda one: one.page_name):
        name = family.page_name
        labels = ", ".join(f"`{label}`" for label in family.labels) or "–"
        meaning = MEANINGS.get(name) or family.text
        assert meaning, f"say in MEANINGS what {name} is"
        yield f"| `{name}` | {family.kind} | {labels} | {meaning[0].lower()}{meaning[1:]} |"


async def _page() -> str:
    return page()


def main(arguments: list[str]) -> int:
    text = asyncio.run(_page())
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text() == text:
            return 0
        print(f"{PAGE} is out of date: run python -m tools.metrics_page", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
