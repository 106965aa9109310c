"""Every action of an operator as a typed function: the library under tools and dashboards.

    async with Admin("127.0.0.1:9876", config=load_client_config("tools.conf")) as admin:
        progress = await admin.groups.progress("billing")

`cometmq.admin.sync` has the same without `async`. It works with RocketMQ's servers (4.9, 5.x) and ours.

    admin.clusters        all, info, brokers (a row and figures for each)
    admin.brokers         places, runtime, settings, update_settings, consume_stats, stats, system_topics,
                          clean_expired_queues, clean_unused_topics, delete_expired_log
    admin.name_servers    addresses, brokers, settings, update_settings, wipe_write_perm, add_write_perm
    admin.kv              get, of_namespace, put, delete
    admin.controllers     metadata, leader, sync_states, elect, clean_broker, settings, update_settings
    admin.replication     status, epochs, reset_master_flush_offset
    admin.topics          names, definitions, rows, get, route, clusters, status, groups, all_groups, traffic, create,
                          create_many, set_perm, delete
    admin.groups          names, check_known, definitions, rows, create, create_many, delete, set_consume_mode,
                          is_readable, set_readable, topics, progress, summary
    admin.connections     consumers, all_consumers, producers, all_producers, running_info, subscription, holders
    admin.offsets         preview, reset, skip, clone, commit, time_span, of_clients
    admin.messages        by_id, all_by_id, by_key, by_offset, ranges, read, scan, send, resend, recall,
                          consume_directly, check_again, tracks, queue_entries
    admin.dead_letters    count, scan, resend
    admin.traces          of_message
    admin.users           all, get, create, update, delete, copy                                     RocketMQ 5 (ACL 2)
    admin.acls            all, get, create, put, update, delete, copy                                RocketMQ 5 (ACL 2)
    admin.plain_accounts  all, put, delete, versions, set_white_addresses                            RocketMQ 4 (ACL 1)
    admin.definitions     read (export), plan, write (import)

What is asked of several servers returns ``ByServer`` (answers and failures by address), ``Listing`` (rows, and the
servers they lack), or a value with ``failed``: one dead server does not hide what the others say. ``raise_failed()``
turns failures into a ``PartialFailure``. What no server can do raises: ``NoSuchName`` and other ``UsageError`` before
anything is changed (``NoSuchTopic`` and ``NeverOnline`` are ``NoRoute``, too), ``NoNameServer``, and
``BrokerReplyError`` if the only server that was asked refuses.

``Target`` says which brokers are meant: all, a cluster, a name, or one address.
"""

from cometmq.admin.accounts.plain_accounts import PlainAccountsVersion
from cometmq.admin.accounts.users import new_acl
from cometmq.admin.admin import Admin
from cometmq.admin.definitions.document import (
    Definitions,
    DefinitionsError,
    GroupDefinition,
    TopicDefinition,
)
from cometmq.admin.definitions.transfer import Change, ImportResult, Step
from cometmq.admin.errors import NeverOnline, NoSuchName, NoSuchTopic, PartialFailure
from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.groups.group_rows import GroupProgress, GroupRow, GroupSummary, QueueLag
from cometmq.admin.groups.groups import new_group
from cometmq.admin.groups.offsets import ResetResult
from cometmq.admin.groups.reset_plan import OffsetMove, ResetPoint
from cometmq.admin.messages.dead_letters import DeadLetter, ResentLetters
from cometmq.admin.messages.fate import MessageTrack, TrackType
from cometmq.admin.messages.traces import Consumption, MessageTrace, TraceRow
from cometmq.admin.servers.clusters import BrokerRow, Cluster
from cometmq.admin.servers.controllers import Election
from cometmq.admin.servers.figures import BrokerFigures
from cometmq.admin.target import Place, Target
from cometmq.admin.topics.topic_rows import QueueRow, TopicGroups, TopicRow, TopicStatus
from cometmq.admin.topics.topics import new_topic
from cometmq.admin.topics.traffic import TopicTraffic, Traffic

__all__ = [
    "Admin",
    "BrokerFigures",
    "BrokerRow",
    "ByServer",
    "Change",
    "Cluster",
    "Consumption",
    "DeadLetter",
    "Definitions",
    "DefinitionsError",
    "Election",
    "GroupDefinition",
    "GroupProgress",
    "GroupRow",
    "GroupSummary",
    "ImportResult",
    "Listing",
    "MessageTrace",
    "MessageTrack",
    "NeverOnline",
    "NoSuchName",
    "NoSuchTopic",
    "OffsetMove",
    "PartialFailure",
    "Place",
    "PlainAccountsVersion",
    "QueueLag",
    "QueueRow",
    "ResentLetters",
    "ResetPoint",
    "ResetResult",
    "Step",
    "Target",
    "TopicDefinition",
    "TopicGroups",
    "TopicRow",
    "TopicStatus",
    "TopicTraffic",
    "TraceRow",
    "TrackType",
    "Traffic",
    "new_acl",
    "new_group",
    "new_topic",
]
