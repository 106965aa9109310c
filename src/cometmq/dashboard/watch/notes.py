"""What the dashboard finds wrong, in English: one text and one remedy for each code.

The page has the same codes in its own tables of words; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import count
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from cometmq.dashboard.bodies.common import Note

ERROR, WARNING, INFO = "error", "warning", "info"
_ORDER: Final = {ERROR: 0, WARNING: 1, INFO: 2}


class Words(NamedTuple):
    text: str
    fix: str


WORDS: Final = {
    "name_server_silent": Words(
        "No name server answers: {problem}",
        "Start a name server at one of these addresses, or correct namesrvAddr. Figures are those from before.",
    ),
    "no_broker": Words(
        "The name server knows no broker",
        "Start a broker with namesrvAddr set to this name server.",
    ),
    "broker_silent": Words(
        "Broker {broker} does not answer: {problem}",
        "Look whether its process runs and whether its port is reached from here. What it holds waits until then.",
    ),
    "slave_silent": Words(
        "Replica {broker_id} of broker {broker} does not answer: {problem}",
        "Start it again; until then the broker's messages have one copy less.",
    ),
    "disk_full": Words(
        "The disk of broker {broker} is {disk_ratio:.0%} full",
        "Shorten fileReservedTime, delete topics, or give it more space. From 90% on, a broker refuses messages.",
    ),
    "certificate_ends": Words(
        "The certificate of {server} ends in {days} days",
        "Renew it now; new connections use the new file, without a restart.",
    ),
    "certificate_ended": Words(
        "The certificate of {server} has ended",
        "Renew it: whoever verifies certificates can no longer connect.",
    ),
    "slave_behind": Words(
        "Replica {broker_id} of broker {broker} is {lag_bytes} bytes behind its master",
        "Look at its disk and network. If the master is lost now, what the replica lacks is lost with it.",
    ),
    "not_in_sync": Words(
        "Replica {broker_id} of broker {broker} is not in the set of those that have everything",
        "It is taken back by itself when it has caught up; if it does not, look at its log.",
    ),
    "group_offline": Words(
        "Nobody consumes for group {group}, and {lag} messages wait",
        "Start its consumers. If the group is no longer needed, delete it, or skip what waits.",
    ),
    "group_behind": Words(
        "Group {group} is {lag_ms} ms behind, with {lag} messages waiting",
        "See on its page which queue is stuck and what its consumers do; add consumers if they are just busy.",
    ),
    "subscriptions_differ": Words(
        "Members of group {group} subscribe to different things: {topics}",
        "Give all members of a group the same topics and filters; otherwise messages are skipped.",
    ),
    "dead_letters_grew": Words(
        "{count} new dead letters of group {group} in the last minutes",
        "Read one of them to see why its consumers refuse it, mend that, then resend.",
    ),
    "definitions_differ": Words(
        "Brokers define topic {topic} differently",
        "Set the same permission and number of queues at all brokers on the topic's page.",
    ),
    "more": Words("{count} more problems", "Mend these first."),
    # Why a group is stuck.
    "stuck_nobody": Words(
        "No consumer of the group is online", "Start one; nothing else moves the group's position."
    ),
    "stuck_disabled": Words(
        "Consuming is switched off for this group at broker {broker}",
        "Switch it on in the group's definition.",
    ),
    "stuck_not_readable": Words(
        "Topic {topic} may not be read at broker {broker}", "Give the topic read permission again."
    ),
    "stuck_not_subscribed": Words(
        "No member subscribes to topic {topic}, in which {lag} messages wait",
        "Subscribe to it, or skip what waits there.",
    ),
    "stuck_no_owner": Words(
        "{queues} queues of topic {topic} have no consumer, with {lag} messages in them",
        "Members take over such queues within a minute; if they do not, look for members with different subscriptions.",
    ),
    "stuck_mismatch": Words(
        "Members subscribe to different things in topic {topic}",
        "Give all members the same topics and filters.",
    ),
    "stuck_queue": Words(
        "Queue {broker}/{queue_id} of topic {topic} has not moved for {idle_ms} ms; its consumer is {client}",
        "Look at what this consumer's threads do; restart it if it hangs.",
    ),
    "stuck_slow": Words(
        "Consumers take {consume_ms} ms for a message of topic {topic}",
        "Make the listener faster, or add consumers: up to one for each queue.",
    ),
    "stuck_failing": Words(
        "Consumers fail for {failed_tps} messages of topic {topic} per second",
        "Look into their logs; what fails is retried and ends as a dead letter.",
    ),
    "stuck_few": Words(
        "{members} consumers share {queues} queues and are {lag} messages behind",
        "Add consumers; up to one for each queue helps.",
    ),
    "stuck_unknown": Words(
        "Broker {broker} does not answer, so this is not all that can be said",
        "Look at the broker first.",
    ),
}


def note(severity: str, code: str, page: str, since_ms: int, **params: Any) -> Note:
    words = WORDS[code]
    return Note(
        severity=severity,
        code=code,
        params=params,
        text=words.text.format(**params),
        fix=words.fix.format(**params),
        page=page,
        since_ms=since_ms,
    )


def worst_first(notes: Iterable[Note], count_max: int) -> tuple[list[Note], int]:
    """The worst ones, and how many are left out. Of thousands, only those that are shown are ever held."""
    seen = count()

    def counted() -> Iterator[Note]:
        for one, _ in zip(notes, seen, strict=False):
            yield one

    worst = nsmallest(count_max, counted(), key=lambda one: (_ORDER[one.severity], one.since_ms))
    return worst, next(seen) - len(worst)


def page_of(kind: str, name: str) -> str:
    """Where the page shows something: ``#/groups/billing``."""
    return f"#/{kind}/{quote(name, safe='')}"
