"""What is known to differ between our cluster and RocketMQ's, as mqadmin shows it, and why.

A command that is in none of these tables prints the same for both. The test fails in both directions: when a command
differs that should not, and when one is the same that is said to differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .mqadmin_script import BOTH, NEW
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5

SAME = "same"
DIFFERS = "differs"
NOT_YET = "not yet"
NOT_TRIED = "not tried"

Versions = tuple[str, ...]

_SETTINGS = "each make has settings of its own"
_SYSTEM_TOPICS = (
    "those of pop, timers and transactions come with their first use; none of replication"
)

REASONS: Mapping[str, tuple[Versions, str]] = {
    "brokerStatus": (BOTH, "ours tells the figures of both series under the names of both"),
    "getBrokerConfig": (BOTH, _SETTINGS),
    "getControllerConfig": (NEW, _SETTINGS),
    "getNamesrvConfig": (BOTH, _SETTINGS),
    "topicList": (NEW, _SYSTEM_TOPICS),
}
"""Command to the versions in which its output differs, and the reason."""

_COLD = "flow control for reads from disk"
_LITE = "lite topics"
_ROCKSDB = "stores in RocksDB"

MISSING: Mapping[str, tuple[Versions, str]] = {
    "exportPopRecord": (NEW, "stores in RocksDB"),
    "resetMasterFlushOffset": (NEW, "slaves that keep their master's flush offset"),
    **dict.fromkeys(
        (
            *("getColdDataFlowCtrInfo", "updateColdDataFlowCtrGroupConfig"),
            *("removeColdDataFlowCtrGroupConfig", "setCommitLogReadAheadMode"),
        ),
        (NEW, _COLD),
    ),
    **dict.fromkeys(
        (
            *("getBrokerLiteInfo", "getParentTopicInfo", "getLiteTopicInfo"),
            *("getLiteClientInfo", "getLiteGroupInfo", "triggerLiteDispatch"),
        ),
        (NEW, _LITE),
    ),
    "updateStaticTopic": (NEW, "static topics"),
    "remappingStaticTopic": (NEW, "static topics"),
    "addBroker": (NEW, "several brokers in one process"),
    "removeBroker": (NEW, "several brokers in one process"),
    "switchTimerEngine": (NEW, "stores in RocksDB"),
    "dumpCompactionLog": (NEW, "compacted topics"),
    "exportMetadataInRocksDB": (NEW, _ROCKSDB),
    "rocksDBConfigToJson": (NEW, _ROCKSDB),
    "checkRocksdbCqWriteProgress": (NEW, _ROCKSDB),
}
"""Command to the versions that have it, and what our servers lack."""

UNTRIED: Mapping[str, str] = {
    "clusterRT": "runs until it is stopped; checkMsgSendRT does the same once",
    "startMonitoring": "runs until it is stopped",
}


def expected(command: str, version: str) -> str:
    """The verdict that a run must come to."""
    if command in UNTRIED:
        return NOT_TRIED
    for table, verdict in ((REASONS, DIFFERS), (MISSING, NOT_YET)):
        if command in table and version in table[command][0]:
            return verdict
    return SAME


def section(found: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The table of commands in the form that ``tools/compatibility.py`` renders.

    Args:
        found: version to command to verdict.
    """
    commands = sorted({command for verdicts in found.values() for command in verdicts})
    versions = sorted(found)
    return {
        "title": "mqadmin",
        "order": 3,
        "columns": ["command", *versions, "because"],
        "rows": [
            [
                command,
                *(found[version].get(command, "–") for version in versions),
                _because(command, (found[version].get(command, SAME) for version in versions)),
            ]
            for command in commands
        ],
        "notes": [
            "same: the output is that of RocketMQ's own cluster, after removing addresses, ids, times, rates and "
            "versions",
            "not yet: our servers lack what the command is about",
        ],
    }


def _because(command: str, verdicts: Iterable[str]) -> str:
    if all(verdict == SAME for verdict in verdicts):
        return ""
    if command in UNTRIED:
        return UNTRIED[command]
    if command in REASONS:
        return REASONS[command][1]
    return f"needs {MISSING[command][1]}" if command in MISSING else "unexpected"


_EVERYWHERE = (OURS, ROCKETMQ_5)

OWN_REASONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "brokerConsumeStats": (
        _EVERYWHERE,
        "RocketMQ's leaves out queues of which nothing is consumed yet",
    ),
    **dict.fromkeys(
        ("queryMsgById", "queryMsgByUniqueKey", "queryMsgByOffset"),
        (_EVERYWHERE, "why a group did not get a message is said in other words"),
    ),
    "electMaster": (_EVERYWHERE, "RocketMQ's fails to read the answer, and prints an exception"),
    "updateControllerConfig": (
        (OURS,),
        "ours prints what the server says about when it takes effect",
    ),
    "clusterAclConfigVersion": (
        (OURS, ROCKETMQ_4),
        "both tools change the same files, one after the other, so their versions differ",
    ),
    "updateAclConfig": (
        (OURS, ROCKETMQ_4),
        "ours does not show the secret",
    ),
    "queryMsgByKey": (_EVERYWHERE, "RocketMQ's adds a column for its index in RocksDB"),
    "topicRoute": ((OURS,), "RocketMQ's adds enableActingMaster"),
    "updateTopic": (
        _EVERYWHERE,
        "with -o true, RocketMQ's shows an exception and goes on if the topic was not ordered before",
    ),
    "consumerProgress": (
        _EVERYWHERE,
        "ours lists every group that a broker knows, RocketMQ's those with a retry topic, its own included",
    ),
}
"""Subcommand of our mqadmin to the clusters at which it prints something else than RocketMQ's, and the reason."""

OWN_COMMANDS = frozenset(
    {"listDeadLetters", "resendDeadLetters", "exportDefinitions", "importDefinitions"}
)
"""Those of our mqadmin that RocketMQ's does not have."""
