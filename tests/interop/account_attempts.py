"""What clients try with which account, and what a broker makes of it.

An outcome is ``ok``, or the code and the remark of the refusal as the client shows them. ``theirs`` is set where
RocketMQ lets through what ours does not (docs/decisions/0033-accounts.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .account_servers import (
    BUILDER,
    CLOSED,
    CLUSTER_NAME,
    CONSUMERS,
    NEIGHBOUR,
    NEWCOMER,
    NOBODY,
    OPEN,
    OPERATOR,
    READ_ONLY,
    READERS,
    RETIRED,
    STRANGER,
    STRANGERS,
    TENANT,
    TRAVELLER,
    UNLISTED,
    VISITOR,
    WRITE_ONLY,
    Account,
)
from .systems import OURS

OK = "ok"

JAVA_OPERATIONS = frozenset(
    {
        *("send", "batch", "pull", "consume", "max-offset", "commit"),
        *("create-topic", "delete-topic", "create-group", "delete-group"),
        *("topic-stats", "consume-stats", "broker-config", "update-config"),
    }
)
GO_OPERATIONS = frozenset({"send", "batch", "pull"})
NODE_OPERATIONS = frozenset(
    {
        *("send", "pull", "consume", "max-offset", "create-topic"),
        *("heartbeat", "members", "position", "send-back"),
    }
)
OWN_OPERATIONS = frozenset({"send", "batch", "pull", "consume", "max-offset", "position"})

Surprises = dict[str, str]
"""Make and attempt to what was expected and found."""

# Where in RocketMQ's source a refusal comes from: 4.9 adds it to its text.
_PLACE = re.compile(r", org\.apache\.rocketmq\.[\w.$]+\([\w.]+:\d+\)")
_GO_REFUSAL = re.compile(r"(?:CODE|unknown Response Code): (\d+), (?:DESC|remark): ")


@dataclass(frozen=True)
class Attempt:
    operation: str
    account: Account
    topic: str = OPEN
    group: str = READERS
    ours: str = OK
    theirs: str | None = None

    @property
    def name(self) -> str:
        who = self.account.name or "nobody"
        if self.account.token:
            who += " with a token"
        elif self.account.secret == _WRONG:
            who += " with a wrong secret"
        return f"{self.operation} {self.topic} {self.group} as {who}"

    def expected(self, *, of_ours: bool) -> str:
        return self.ours if of_ours or self.theirs is None else self.theirs


_WRONG = "wrong-secret"


def wrong(account: Account) -> Account:
    return account._replace(secret=_WRONG)


def shown(outcome: str) -> str:
    """An outcome without what clients and versions add to it."""
    return _GO_REFUSAL.sub(r"\1 ", _PLACE.sub("", outcome))


def offered(attempts: Iterable[Attempt], operations: frozenset[str]) -> list[Attempt]:
    return [attempt for attempt in attempts if attempt.operation in operations]


def surprises_of(found: Iterable[tuple[str, Attempt, str]]) -> Surprises:
    """What was not as expected; ``found`` are outcomes by make and attempt."""
    surprises = {}
    for make, attempt, outcome in found:
        expected = attempt.expected(of_ours=make == OURS)
        if shown(outcome) != expected:
            surprises[f"{make}: {attempt.name}"] = (
                f"{expected!r} expected, found {shown(outcome)!r}"
            )
    return surprises


def _plain(text: str) -> str:
    return f"1 org.apache.rocketmq.acl.common.AclException: {text}"


def _topic(topic: str) -> str:
    return _plain(f"No default permission for topic:{topic}")


def _group(group: str) -> str:
    return _plain(f"No default permission for group:{group}")


def _admin(code: int) -> str:
    return _plain(
        f"Need admin permission for request code={code}, but accessKey={TENANT.name} is not"
    )


PLAIN_ATTEMPTS = (
    # Who is it?
    Attempt("send", NOBODY, ours=_plain("No accessKey is configured")),
    Attempt("pull", NOBODY, ours=_plain("No accessKey is configured")),
    Attempt("create-topic", NOBODY, ours=_plain("No accessKey is configured")),
    Attempt("send", STRANGER, ours=_plain(f"No acl config for {STRANGER.name}")),
    Attempt("pull", STRANGER, ours=_plain(f"No acl config for {STRANGER.name}")),
    Attempt(
        "send",
        wrong(TENANT),
        ours=_plain(f"Check signature failed for accessKey={TENANT.name}"),
    ),
    Attempt(
        "pull",
        wrong(TENANT),
        ours=_plain(f"Check signature failed for accessKey={TENANT.name}"),
    ),
    # Its address is white.
    Attempt("send", wrong(NEIGHBOUR), CLOSED),
    Attempt("send", TENANT._replace(token="token-of-a-service")),
    # Topics.
    Attempt("send", TENANT, OPEN),
    Attempt("send", TENANT, WRITE_ONLY),
    Attempt("send", TENANT, READ_ONLY, ours=_topic(READ_ONLY)),
    Attempt("send", TENANT, CLOSED, ours=_topic(CLOSED)),
    Attempt("send", TENANT, UNLISTED, ours=_topic(UNLISTED)),
    Attempt("send", VISITOR, CLOSED),
    Attempt("batch", TENANT, OPEN),
    Attempt("batch", TENANT, CLOSED, ours=_topic(CLOSED), theirs=OK),
    Attempt("pull", TENANT, OPEN),
    Attempt("pull", TENANT, READ_ONLY),
    Attempt("pull", TENANT, WRITE_ONLY, ours=_topic(WRITE_ONLY)),
    Attempt("pull", TENANT, UNLISTED, ours=_topic(UNLISTED)),
    Attempt("max-offset", TENANT, READ_ONLY),
    Attempt("max-offset", TENANT, CLOSED, ours=_topic(CLOSED), theirs=OK),
    Attempt("consume", TENANT, OPEN, CONSUMERS),
    # Groups.
    Attempt("pull", TENANT, OPEN, STRANGERS, ours=_group(STRANGERS)),
    Attempt("commit", TENANT, OPEN, READERS),
    Attempt("commit", TENANT, OPEN, STRANGERS, ours=_group(STRANGERS)),
    Attempt("commit", TENANT, WRITE_ONLY, READERS, ours=_topic(WRITE_ONLY)),
    Attempt("heartbeat", TENANT, OPEN, READERS),
    Attempt("heartbeat", TENANT, WRITE_ONLY, READERS, ours=_topic(WRITE_ONLY)),
    Attempt("heartbeat", TENANT, OPEN, STRANGERS, ours=_group(STRANGERS)),
    Attempt("members", TENANT, OPEN, STRANGERS, ours=_group(STRANGERS)),
    Attempt("send-back", TENANT, OPEN, STRANGERS, ours=_group(STRANGERS)),
    Attempt("position", TENANT, OPEN, READERS),
    # For administrators.
    Attempt("create-topic", TENANT, "Built-topic", ours=_admin(17)),
    Attempt("create-topic", OPERATOR, "Built-topic"),
    Attempt("delete-topic", TENANT, "Built-topic", ours=_admin(215)),
    Attempt("delete-topic", OPERATOR, "Built-topic"),
    Attempt("create-group", TENANT, group="built-group", ours=_admin(200)),
    Attempt("create-group", OPERATOR, group="built-group"),
    Attempt("delete-group", TENANT, group="built-group", ours=_admin(207)),
    Attempt("delete-group", OPERATOR, group="built-group"),
    Attempt("update-config", TENANT, ours=_admin(25)),
    Attempt("update-config", OPERATOR),
    Attempt("broker-config", TENANT, ours=_admin(26), theirs=OK),
    Attempt("broker-config", OPERATOR),
    Attempt("topic-stats", TENANT, OPEN),
    Attempt("topic-stats", TENANT, CLOSED, ours=_topic(CLOSED), theirs=OK),
    Attempt("consume-stats", TENANT, group=READERS),
)


def _nothing(account: Account, resource: str) -> str:
    return _refused(account, resource, "no matched policies")


def _deny(account: Account, resource: str) -> str:
    return _refused(account, resource, "the decision is deny")


def _refused(account: Account, resource: str, why: str) -> str:
    return f"16 User:{account.name} has no permission to access {resource} from 127.0.0.1, {why}."


_CLUSTER = f"Cluster:{CLUSTER_NAME}"

USER_ATTEMPTS = (
    # Who is it?
    Attempt("send", NOBODY, ours="16 username cannot be null."),
    Attempt("pull", NOBODY, ours="16 username cannot be null."),
    Attempt("create-topic", NOBODY, ours="16 username cannot be null."),
    Attempt("send", STRANGER, ours=f"16 User:{STRANGER.name} is not found."),
    Attempt("pull", STRANGER, ours=f"16 User:{STRANGER.name} is not found."),
    Attempt("send", wrong(TENANT), ours="16 check signature failed."),
    Attempt("pull", wrong(TENANT), ours="16 check signature failed."),
    Attempt("send", RETIRED, ours=f"16 User:{RETIRED.name} is disabled."),
    Attempt("pull", RETIRED, ours=f"16 User:{RETIRED.name} is disabled."),
    Attempt("send", TENANT._replace(token="token-of-a-service")),
    # Topics.
    Attempt("send", TENANT, OPEN),
    Attempt("send", TENANT, WRITE_ONLY),
    Attempt("send", TENANT, READ_ONLY, ours=_nothing(TENANT, f"Topic:{READ_ONLY}")),
    Attempt("send", TENANT, CLOSED, ours=_deny(TENANT, f"Topic:{CLOSED}")),
    Attempt("send", NEWCOMER, OPEN, ours=_nothing(NEWCOMER, f"Topic:{OPEN}")),
    Attempt("send", TRAVELLER, OPEN, ours=_nothing(TRAVELLER, f"Topic:{OPEN}")),
    Attempt("send", VISITOR, UNLISTED),
    Attempt("send", VISITOR, CLOSED, ours=_deny(VISITOR, f"Topic:{CLOSED}")),
    Attempt("send", OPERATOR, CLOSED),
    Attempt("batch", TENANT, OPEN),
    Attempt("batch", TENANT, CLOSED, ours=_deny(TENANT, f"Topic:{CLOSED}")),
    Attempt("pull", TENANT, OPEN),
    Attempt("pull", TENANT, READ_ONLY),
    Attempt("pull", TENANT, WRITE_ONLY, ours=_nothing(TENANT, f"Topic:{WRITE_ONLY}")),
    Attempt("pull", VISITOR, CLOSED),
    Attempt("consume", TENANT, OPEN, CONSUMERS),
    Attempt("max-offset", VISITOR, OPEN),
    Attempt("max-offset", TENANT, WRITE_ONLY, ours=_nothing(TENANT, f"Topic:{WRITE_ONLY}")),
    Attempt("topic-stats", VISITOR, OPEN),
    Attempt("topic-stats", TENANT, OPEN, ours=_nothing(TENANT, f"Topic:{OPEN}")),
    # Groups.
    Attempt("pull", TENANT, OPEN, STRANGERS, ours=_nothing(TENANT, f"Group:{STRANGERS}")),
    Attempt("commit", TENANT, OPEN, READERS),
    Attempt("commit", TENANT, OPEN, STRANGERS, ours=_nothing(TENANT, f"Group:{STRANGERS}")),
    Attempt("heartbeat", TENANT, OPEN, READERS),
    Attempt("heartbeat", TENANT, WRITE_ONLY, ours=_nothing(TENANT, f"Topic:{WRITE_ONLY}")),
    Attempt("heartbeat", TENANT, OPEN, STRANGERS, ours=_nothing(TENANT, f"Group:{STRANGERS}")),
    Attempt("members", TENANT, OPEN, STRANGERS, ours=_nothing(TENANT, f"Group:{STRANGERS}")),
    Attempt("send-back", TENANT, OPEN, STRANGERS, ours=_nothing(TENANT, f"Group:{STRANGERS}")),
    Attempt("position", TENANT, OPEN, READERS),
    Attempt("position", TENANT, OPEN, STRANGERS, ours=_nothing(TENANT, f"Group:{STRANGERS}")),
    Attempt("consume-stats", VISITOR, group=READERS),
    Attempt("consume-stats", TENANT, group=READERS, ours=_nothing(TENANT, f"Group:{READERS}")),
    # What operators do.
    Attempt("create-topic", TENANT, "Built-topic", ours=_nothing(TENANT, "Topic:Built-topic")),
    Attempt("create-topic", BUILDER, "Built-topic"),
    Attempt("delete-topic", TENANT, "Built-topic", ours=_nothing(TENANT, "Topic:Built-topic")),
    Attempt("delete-topic", BUILDER, "Built-topic"),
    Attempt(
        "create-group",
        TENANT,
        group="built-group",
        ours=_nothing(TENANT, "Group:built-group"),
        theirs=OK,
    ),
    Attempt("create-group", BUILDER, group="built-group"),
    Attempt(
        "delete-group", TENANT, group="built-group", ours=_nothing(TENANT, "Group:built-group")
    ),
    Attempt("delete-group", BUILDER, group="built-group"),
    Attempt("update-config", TENANT, ours=_nothing(TENANT, _CLUSTER), theirs=OK),
    Attempt("update-config", BUILDER),
    Attempt("broker-config", TENANT, ours=_nothing(TENANT, _CLUSTER), theirs=OK),
    Attempt("broker-config", BUILDER),
)
