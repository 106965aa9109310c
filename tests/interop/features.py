"""Which scenarios of which client prove which feature.

A feature that a client does not offer has the reason in place of scenarios. The table in ``docs/compatibility.md`` is
made from this list and from what the last run found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Proof = tuple[str, ...] | str

GO = "Go 2.1.2"
NODE = "Node ali-ons 3.12.0"
JAVA_VERSIONS = ("4.9.8", "5.5.0")
HEADER_ENCODINGS = ("JSON", "ROCKETMQ")

Results = Mapping[str, Mapping[str, str]]
"""Client to scenario to outcome, in pytest's words: passed or failed."""


def java_client(version: str, encoding: str) -> str:
    """The name of a Java client in the table."""
    return f"Java {version}, {encoding}"


CLIENTS = (
    *(java_client(version, encoding) for version in JAVA_VERSIONS for encoding in HEADER_ENCODINGS),
    GO,
    NODE,
)


@dataclass(frozen=True)
class Feature:
    title: str
    java: Proof
    go: Proof
    node: Proof

    def proof(self, client: str) -> Proof:
        """The scenarios that prove this feature for a client, or why it has none."""
        if client == GO:
            return self.go
        return self.node if client == NODE else self.java


PLAIN_ACCOUNTS = "plain-accounts"
USER_ACCOUNTS = "user-accounts"

NO_CALL = "the client has no call for it"
NOT_TRIED = "no scenario yet"

INTRO = (
    "Each cell is one or more scenarios that compare content, order and counts; JSON and ROCKETMQ are two encodings "
    "of request headers. A dash stands for what the client does not offer."
)

FEATURES = (
    Feature(
        "topic creation by a call",
        java=("topic-creation-by-admin", "topic-creation-by-producer"),
        go=("topic-creation",),
        node=("topic-creation",),
    ),
    Feature(
        "topic creation by a send",
        java=("topic-auto-creation",),
        go=("topic-auto-creation",),
        node="the client sends to topics with a route only",
    ),
    Feature("synchronous send", java=("send-sync",), go=("send-sync",), node=("send-sync",)),
    Feature(
        "asynchronous send", java=("send-async",), go=("send-async",), node=("send-concurrent",)
    ),
    Feature("one-way send", java=("send-one-way",), go=("send-one-way",), node=NO_CALL),
    Feature("batch send", java=("send-batch",), go=("send-batch",), node=NO_CALL),
    Feature(
        "keys, tags and properties in Unicode",
        java=("send-sync",),
        go=("send-sync",),
        node=("send-sync",),
    ),
    Feature(
        "compressed bodies",
        java=("send-compressed",),
        go=("send-compressed",),
        node=("send-compressed",),
    ),
    Feature(
        "bodies of 4 MB, and the refusal of larger ones",
        java=("send-refused",),
        go=("send-large",),
        node=("send-large",),
    ),
    Feature(
        "push consumption, cluster mode",
        java=("push-backlog",),
        go=("push-backlog",),
        node=("push-backlog",),
    ),
    Feature(
        "push consumption, broadcast mode",
        java=("push-broadcast",),
        go=("push-broadcast",),
        node=("push-broadcast",),
    ),
    Feature(
        "pull consumption",
        java=("pull-consumer", "pull-long-polling", "lite-pull-consumer"),
        go=("pull-consumer",),
        node=NO_CALL,
    ),
    Feature(
        "tag filter", java=("push-tag-filter",), go=("push-tag-filter",), node=("push-tag-filter",)
    ),
    Feature(
        "SQL92 filter",
        java=(
            "expression-push",
            "expression-change",
            "expression-pull",
            "expression-long-polling",
            "expression-lite-pull",
            "expression-refused",
        ),
        go=NOT_TRIED,
        node=NO_CALL,
    ),
    Feature(
        "delay levels",
        java=("delay-levels", "delay-level-above-the-highest"),
        go=NOT_TRIED,
        node=NOT_TRIED,
    ),
    Feature(
        "retries and dead letters",
        java=(
            "retry-until-success",
            "retry-dead-letter",
            "retry-dead-letter-at-once",
            "retry-orderly-dead-letter",
        ),
        go=NOT_TRIED,
        node=NOT_TRIED,
    ),
    Feature(
        "requests and replies",
        java=("request-reply", "request-without-reply"),
        go=NOT_TRIED,
        node=NO_CALL,
    ),
    Feature(
        "transactions",
        java=("transaction-outcomes", "transaction-check-by-another-producer"),
        go=NOT_TRIED,
        node=NO_CALL,
    ),
    Feature(
        "two consumers share queues and take over",
        java=("push-two-consumers",),
        go=("push-two-consumers",),
        node=("push-two-consumers",),
    ),
    Feature(
        "ordered sends, orderly consumption",
        java=("push-orderly",),
        go=("push-orderly",),
        node="the client does not lock queues",
    ),
    Feature("begin with the first", java=("from-first",), go=("from-first",), node=("from-first",)),
    Feature("begin with the last", java=("from-last",), go=("from-last",), node=("from-last",)),
    Feature(
        "begin at a time",
        java=("from-timestamp",),
        go=("from-timestamp",),
        node=("from-timestamp",),
    ),
    Feature(
        "offsets over a restart of the broker",
        java=("before-restart-concurrent", "after-restart-concurrent", "during-restart"),
        go=("before-restart", "after-restart"),
        node=("before-restart", "after-restart"),
    ),
    Feature("view by id", java=("view-by-id",), go=NO_CALL, node=NO_CALL),
    Feature("query by key", java=("query-by-key",), go=NO_CALL, node=NO_CALL),
    Feature("search by time", java=("search-by-time",), go=NO_CALL, node=NO_CALL),
    Feature(
        "positions reset by time, while consumers run and while none does",
        java=(
            "reset-back-while-running",
            "reset-before-the-first",
            "reset-after-the-last",
            "reset-skip-backlog",
            "reset-while-offline",
            "reset-refused",
        ),
        go=NO_CALL,
        node=NO_CALL,
    ),
    Feature(
        "positions cloned and measured",
        java=("clone-offsets", "consume-time-span", "consume-stats"),
        go=NO_CALL,
        node=NO_CALL,
    ),
    Feature(
        "members with different subscriptions",
        java=("subscription-mismatch",),
        go=NOT_TRIED,
        node=NOT_TRIED,
    ),
    Feature(
        "TLS",
        java=("tls",),
        go="the client has no TLS",
        node="the client has no TLS",
    ),
    Feature(
        "accounts of RocketMQ 4 (ACL 1)",
        java=(PLAIN_ACCOUNTS,),
        go=(PLAIN_ACCOUNTS,),
        node=(PLAIN_ACCOUNTS,),
    ),
    Feature(
        "accounts of RocketMQ 5 (ACL 2)",
        java=(USER_ACCOUNTS,),
        go=(USER_ACCOUNTS,),
        node=(USER_ACCOUNTS,),
    ),
)


def section(results: Results) -> dict[str, Any]:
    """The table of clients and features in the form that ``tools/compatibility.py`` renders."""
    missing: dict[tuple[str, str], list[str]] = {}
    for feature in FEATURES:
        for client in CLIENTS:
            proof = feature.proof(client)
            if isinstance(proof, str):
                missing.setdefault((client, proof), []).append(feature.title)
    return {
        "title": "Clients",
        "intro": INTRO,
        "order": 1,
        "columns": ["feature", *CLIENTS],
        "rows": [
            [
                feature.title,
                *(_cell(feature.proof(client), results.get(client, {})) for client in CLIENTS),
            ]
            for feature in FEATURES
        ],
        "notes": [
            f"{client}, {', '.join(titles)}: {reason}."
            for (client, reason), titles in missing.items()
        ],
    }


def _cell(proof: Proof, outcomes: Mapping[str, str]) -> str:
    if isinstance(proof, str):
        return "–"
    found = {outcomes.get(scenario, "not run") for scenario in proof}
    if found == {"passed"}:
        return "passes"
    return "fails" if "failed" in found else "not run"
