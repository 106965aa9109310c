"""All routes of the API, by subject."""

from __future__ import annotations

from typing import Final

from cometmq.dashboard.bodies import (
    cluster,
    common,
    groups,
    messages,
    operations,
    overview,
    session,
    topics,
)
from cometmq.dashboard.contract.route import Role, change, get

JSON_LINES: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
BYTES: Final = "application/octet-stream"

SESSION: Final = (
    get(
        "/me",
        "me",
        "Who the caller is, and what the dashboard can do.",
        session.Me,
        role=Role.ANYBODY,
    ),
    change(
        "POST",
        "/session",
        "log_in",
        "Log in with an account of the cluster; sets a cookie.",
        session.Me,
        role=Role.ANYBODY,
        body=session.Login,
    ),
    change("DELETE", "/session", "log_out", "Log out.", session.Me, role=Role.ANYBODY),
    get(
        "/search",
        "search",
        "Topics, groups and brokers by a part of their names; 20 at most.",
        session.Hits,
        query=session.SearchQuery,
    ),
    get(
        "/health",
        "health",
        "Whether the dashboard works; needs no login.",
        session.Health,
        role=Role.ANYBODY,
    ),
)

OVERVIEW: Final = (
    get(
        "/overview",
        "overview",
        "What is wrong, worst first, and how busy it is.",
        overview.Overview,
    ),
    get(
        "/history",
        "history",
        "Charts of the last hours, from the dashboard's own store.",
        overview.History,
        query=overview.HistoryQuery,
    ),
    get(
        "/events",
        "events",
        "A stream of events: `snapshot` when there are new figures, "
        "`alert`, and `message` of a topic that is followed.",
        EVENT_STREAM,
        query=overview.EventsQuery,
    ),
)

CLUSTER: Final = (
    get(
        "/cluster",
        "cluster",
        "Brokers with roles and figures, name servers, controllers.",
        cluster.ClusterView,
    ),
    get(
        "/brokers/{broker}/{id}",
        "broker",
        "What one broker tells about itself.",
        cluster.BrokerView,
    ),
    get(
        "/brokers/{broker}/{id}/settings",
        "broker_settings",
        "Its configuration: value, default, and whether it may change while it runs.",
        cluster.Settings,
    ),
    change(
        "PATCH",
        "/brokers/{broker}/{id}/settings",
        "change_broker_settings",
        "Change settings of a broker.",
        common.Changed,
        role=Role.ADMIN,
        body=cluster.NewSettings,
    ),
    change(
        "POST",
        "/brokers/{broker}/write-permission",
        "write_permission",
        "Have clients send nothing more to a broker, or again.",
        common.Changed,
        role=Role.ADMIN,
        body=cluster.WritePermission,
    ),
    get(
        "/name-servers/settings",
        "name_server_settings",
        "The configuration of the first name server, and where the others differ from it.",
        cluster.Settings,
    ),
    change(
        "POST",
        "/brokers/{broker}/election",
        "elect",
        "Have a controller elect a replica as the master.",
        common.Changed,
        role=Role.ADMIN,
        body=cluster.Election,
        confirms=True,
    ),
)

TOPICS: Final = (
    get(
        "/topics",
        "topics",
        "Topics: filter, sort, page.",
        common.Page[topics.TopicOfList],
        query=topics.TopicsQuery,
    ),
    change(
        "POST",
        "/topics",
        "create_topic",
        "Create a topic at a cluster or at one broker.",
        common.Changed,
        role=Role.OPERATOR,
        body=topics.NewTopic,
    ),
    get(
        "/topics/{topic}",
        "topic",
        "Definitions, route, queues and groups of a topic.",
        topics.TopicView,
    ),
    change(
        "PATCH",
        "/topics/{topic}",
        "change_topic",
        "Change its queues or its permission.",
        common.Changed,
        role=Role.OPERATOR,
        body=topics.ChangedTopic,
    ),
    change(
        "DELETE",
        "/topics/{topic}",
        "delete_topic",
        "Delete a topic with all its messages.",
        common.Changed,
        role=Role.ADMIN,
        body=topics.Confirmed,
        confirms=True,
    ),
    change(
        "POST",
        "/topics/{topic}/messages",
        "send",
        "Send a message.",
        topics.Sent,
        role=Role.OPERATOR,
        body=topics.NewMessage,
    ),
)

GROUPS: Final = (
    get(
        "/groups",
        "groups",
        "Groups with their lag: filter, sort, page.",
        common.Page[groups.GroupOfList],
        query=groups.GroupsQuery,
    ),
    change(
        "POST",
        "/groups",
        "create_group",
        "Create or change a group.",
        common.Changed,
        role=Role.OPERATOR,
        body=groups.NewGroup,
    ),
    get(
        "/groups/{group}",
        "group",
        "Lag by queue, members, subscriptions, and why it is stuck; also while it is offline.",
        groups.GroupView,
    ),
    change(
        "DELETE",
        "/groups/{group}",
        "delete_group",
        "Delete a group with its retry topic and dead letters.",
        common.Changed,
        role=Role.ADMIN,
        body=groups.GroupConfirmed,
        confirms=True,
    ),
    get(
        "/groups/{group}/clients/{client}",
        "client",
        "What one consumer tells about itself.",
        groups.ClientView,
        query=groups.ClientQuery,
    ),
    change(
        "POST",
        "/groups/{group}/reset-preview",
        "preview_reset",
        "What a reset would do, queue by queue; changes nothing.",
        groups.ResetPreview,
        body=groups.Reset,
    ),
    change(
        "POST",
        "/groups/{group}/reset",
        "reset",
        "Have a group go on elsewhere in a topic, online or not.",
        common.Changed,
        role=Role.OPERATOR,
        body=groups.ConfirmedReset,
        confirms=True,
    ),
)

MESSAGES: Final = (
    get(
        "/messages",
        "messages",
        "Search a topic by id, key, time, tag, property, SQL92 or text.",
        messages.MessagesFound,
        query=messages.MessagesQuery,
    ),
    get(
        "/messages/export",
        "export_messages",
        "Messages of a topic as JSON lines.",
        JSON_LINES,
        query=messages.ExportQuery,
    ),
    get(
        "/messages/{id}",
        "message",
        "One message, its body decoded. The id is an offset id, or the unique id with `topic`.",
        messages.MessageView,
        query=messages.MessageQuery,
    ),
    get(
        "/messages/{id}/body",
        "body",
        "The body as it is stored, unless a rule masks it.",
        BYTES,
        query=messages.MessageQuery,
    ),
    get(
        "/messages/{id}/fate",
        "fate",
        "What became of it in each group.",
        messages.Fates,
        query=messages.MessageQuery,
    ),
    get(
        "/messages/{id}/trace",
        "trace",
        "Its way as a time line: stored, delivered, retried, dead.",
        messages.TraceView,
        query=messages.MessageQuery,
    ),
    change(
        "POST",
        "/messages/{id}/resend",
        "resend",
        "Deliver it to one group again, or send it to a topic.",
        common.Changed,
        role=Role.OPERATOR,
        body=messages.Resend,
    ),
)

DEAD_LETTERS: Final = (
    get(
        "/dead-letters",
        "dead_letter_groups",
        "Groups that have dead letters.",
        messages.DeadLetterGroups,
    ),
    get(
        "/dead-letters/{group}",
        "dead_letters",
        "Dead letters of a group, and how many of each kind.",
        messages.DeadLetters,
        query=messages.DeadLettersQuery,
    ),
    change(
        "POST",
        "/dead-letters/{group}/resend",
        "resend_dead_letters",
        "Deliver dead letters to their group again, and to no other.",
        common.Changed,
        role=Role.OPERATOR,
        body=messages.ResendLetters,
        confirms=True,
    ),
    get(
        "/dead-letters/{group}/export",
        "export_dead_letters",
        "Dead letters as JSON lines.",
        JSON_LINES,
        query=messages.DeadLettersQuery,
    ),
    change(
        "DELETE",
        "/dead-letters/{group}",
        "delete_dead_letters",
        "Delete all dead letters of a group; RocketMQ cannot delete single ones.",
        common.Changed,
        role=Role.ADMIN,
        body=topics.Confirmed,
        confirms=True,
    ),
)

WAITING: Final = (
    get(
        "/waiting",
        "waiting",
        "Delayed and timed messages that are not delivered yet.",
        operations.WaitingView,
        query=operations.WaitingQuery,
    ),
    change(
        "POST",
        "/waiting/recall",
        "recall",
        "Take a timed message back.",
        common.Changed,
        role=Role.OPERATOR,
        body=operations.Recall,
    ),
    get(
        "/transactions",
        "transactions",
        "Transactions that are open.",
        operations.OpenTransactions,
        query=operations.WaitingQuery,
    ),
    get(
        "/pipelines",
        "pipelines",
        "Spark pipelines that run or ran, as they reported themselves.",
        operations.Pipelines,
    ),
)

ALERTS: Final = (
    get("/alerts", "alerts", "What fires now, what did, and the rules.", operations.AlertsView),
    change(
        "PUT",
        "/alerts/rules",
        "put_rule",
        "Add a rule, or replace the one of this name.",
        common.Changed,
        role=Role.OPERATOR,
        body=operations.NewRule,
    ),
    change(
        "DELETE",
        "/alerts/rules/{rule}",
        "delete_rule",
        "Remove a rule.",
        common.Changed,
        role=Role.OPERATOR,
    ),
    change(
        "POST",
        "/alerts/silences",
        "silence",
        "Keep an alert quiet for a while, or no longer.",
        common.Changed,
        role=Role.OPERATOR,
        body=operations.Silence,
    ),
)

ACCOUNTS: Final = (
    get(
        "/accounts",
        "accounts",
        "Accounts of the brokers and their rules; never a password.",
        operations.Accounts,
        role=Role.ADMIN,
    ),
    change(
        "PUT",
        "/accounts",
        "put_account",
        "Create or change an account (ACL 2).",
        common.Changed,
        role=Role.ADMIN,
        body=operations.NewAccount,
    ),
    change(
        "DELETE",
        "/accounts/{account}",
        "delete_account",
        "Delete an account and its rules (ACL 2).",
        common.Changed,
        role=Role.ADMIN,
        body=topics.Confirmed,
        confirms=True,
    ),
    change(
        "PUT",
        "/accounts/{account}/rules",
        "put_account_rule",
        "Set what an account may do on a resource.",
        common.Changed,
        role=Role.ADMIN,
        body=operations.NewAccountRule,
    ),
    get(
        "/audit",
        "audit",
        "Who changed what, from where, and how it ended; newest first.",
        operations.AuditLog,
        role=Role.ADMIN,
        query=operations.AuditQuery,
    ),
)

BY_SUBJECT: Final = {
    "session": SESSION,
    "overview": OVERVIEW,
    "cluster": CLUSTER,
    "topics": TOPICS,
    "groups": GROUPS,
    "messages": MESSAGES,
    "dead letters": DEAD_LETTERS,
    "waiting messages": WAITING,
    "alerts": ALERTS,
    "accounts": ACCOUNTS,
}

ROUTES: Final = tuple(route for routes in BY_SUBJECT.values() for route in routes)
