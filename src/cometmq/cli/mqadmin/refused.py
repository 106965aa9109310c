"""Subcommands of RocketMQ's tool that are not here: why, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ROCKSDB: Final = (
    "it is for brokers that keep their tables in RocksDB. CometMQ's are JSON files in the directory config of the "
    "store; to see or move them, use exportMetadata."
)
_LITE: Final = (
    "it is for lite topics, which only some brokers of RocketMQ 5.5 have. For many small streams, use one topic with "
    "tags or an SQL92 filter."
)
_CONTAINER: Final = "it is for several brokers in one Java process. Start each as a process of its own, with mqbroker."
_STATIC: Final = (
    "CometMQ has no static topics, whose queue numbers stay the same when queues move. Add queues with updateTopic on "
    "each broker; docs/howto/scaling.md says how to move them."
)
_COLD: Final = (
    "it is for a limit on reads of old messages from disk. CometMQ limits pulls by size: see "
    "maxTransferBytesOnMessageInDisk (updateBrokerConfig)."
)

REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("exportMetadataInRocksDB", "rocksDBConfigToJson", "checkRocksdbCqWriteProgress"), _ROCKSDB
    ),
    "exportPopRecord": "it moves pop records into RocksDB, which CometMQ does not use.",
    "switchTimerEngine": "it chooses between RocketMQ's two timers. CometMQ has one of its own.",
    **dict.fromkeys(
        (
            *("getBrokerLiteInfo", "getParentTopicInfo", "getLiteTopicInfo"),
            *("getLiteClientInfo", "getLiteGroupInfo", "triggerLiteDispatch"),
        ),
        _LITE,
    ),
    **dict.fromkeys(("addBroker", "removeBroker"), _CONTAINER),
    **dict.fromkeys(("updateStaticTopic", "remappingStaticTopic"), _STATIC),
    **dict.fromkeys(
        (
            *("getColdDataFlowCtrInfo", "updateColdDataFlowCtrGroupConfig"),
            "removeColdDataFlowCtrGroupConfig",
        ),
        _COLD,
    ),
    "setCommitLogReadAheadMode": "CometMQ's broker decides by itself when to read ahead.",
    "dumpCompactionLog": "CometMQ has no compacted topics. To look into a log, use the Spark source rocketmq-log.",
    "startMonitoring": "use `mqadmin consumerProgress --watch 10`, or an alert on the broker's metrics.",
}
"""Name to reason, in the words that the user reads."""
