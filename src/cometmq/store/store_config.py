"""Settings of the store, one slice per part. RocketMQ's keys, defaults and units."""

from __future__ import annotations

from dataclasses import dataclass, field

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.store.files.file_names import LOG_DIRECTORY

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

ASYNC_FLUSH = "ASYNC_FLUSH"
SYNC_FLUSH = "SYNC_FLUSH"

DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLogConfig:
    file_bytes: int = setting(
        "mappedFileSizeCommitLog", "Size of one log file, in bytes.", default=1 * GIB, low=4 * KIB
    )
    message_bytes_max: int = setting(
        "maxMessageSize",
        "Maximum size of a message body, in bytes.",
        default=4 * MIB,
        low=1,
        live=True,
    )
    check_crc_on_recover: bool = setting(
        "checkCRCOnRecover", "Verify body checksums while recovering.", default=True
    )
    recover_by_truncating: bool = setting(
        "recoverByTruncating",
        "Cut a damaged log at its first bad record, or start without a missing log, instead of "
        "passing over it or refusing to start.",
        default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeQueueConfig:
    file_bytes: int = setting(
        "mappedFileSizeConsumeQueue",
        "Size of one consume queue file in bytes, rounded up to whole entries of 20 bytes.",
        default=300_000 * 20,
        low=20,
    )
    open_files_max: int = setting(
        "consumeQueueOpenFilesMax",
        "Maximum number of open consume queue files; at most half of what the process may open.",
        default=16_384,
        low=8,
    )
    message_delay_level: str = setting(
        "messageDelayLevel",
        "Delays by level, starting with level 1.",
        default=DELAY_LEVELS,
        next_start=True,
    )
    extended: bool = setting(
        "enableConsumeQueueExt",
        "Keep the extended consume queue: tag hash, store time and filter bits next to each entry.",
        default=False,
        next_start=True,
    )
    extended_file_bytes: int = setting(
        "mappedFileSizeConsumeQueueExt",
        "Size of one file of the extended consume queue, in bytes.",
        default=48 * MIB,
        low=64,
    )

    @property
    def entry_bytes(self) -> int:
        return 20

    @property
    def real_file_bytes(self) -> int:
        """What a file takes on disk: Java rounds the setting up to whole entries."""
        return -(-self.file_bytes // 20) * 20


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexConfig:
    enabled: bool = setting(
        "messageIndexEnable", "Keep the key index.", default=True, next_start=True
    )
    safe: bool = setting(
        "messageIndexSafe",
        "Start recovery where the index is known to be on disk, however far back that is.",
        default=False,
        next_start=True,
    )
    slot_count: int = setting(
        "maxHashSlotNum", "Hash slots of one index file.", default=5_000_000, low=1
    )
    entry_count: int = setting(
        "maxIndexNum", "Entries of one index file.", default=20_000_000, low=2
    )
    query_count_max: int = setting(
        "maxMsgsNumBatch",
        "Maximum number of messages that a query by key returns.",
        default=64,
        low=1,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushConfig:
    disk_type: str = setting(
        "flushDiskType",
        "When to answer a send: at once, or after its bytes are on disk.",
        default=ASYNC_FLUSH,
        choices=(ASYNC_FLUSH, SYNC_FLUSH),
        next_start=True,
    )
    log_interval_ms: int = setting(
        "flushIntervalCommitLog",
        "Milliseconds between two log flushes.",
        default=500,
        low=1,
        live=True,
    )
    log_least_pages: int = setting(
        "flushCommitLogLeastPages",
        "A log flush waits until there are this many dirty pages of 4 KiB.",
        default=4,
        low=0,
        live=True,
    )
    log_thorough_interval_ms: int = setting(
        "flushCommitLogThoroughInterval",
        "Maximum time that a dirty log page waits, in milliseconds.",
        default=10_000,
        low=1,
        live=True,
    )
    sync_timeout_ms: int = setting(
        "syncFlushTimeout",
        "Milliseconds that a send waits for its flush in SYNC_FLUSH.",
        default=5_000,
        low=1,
        live=True,
    )
    queue_interval_ms: int = setting(
        "flushIntervalConsumeQueue",
        "Milliseconds between two consume queue flushes.",
        default=1_000,
        low=1,
        live=True,
    )
    queue_least_pages: int = setting(
        "flushConsumeQueueLeastPages",
        "A consume queue flush waits until there are this many dirty pages of 4 KiB.",
        default=2,
        low=0,
        live=True,
    )
    queue_thorough_interval_ms: int = setting(
        "flushConsumeQueueThoroughInterval",
        "Maximum time that a dirty consume queue waits, in milliseconds.",
        default=60_000,
        low=1,
        live=True,
    )

    @property
    def is_sync(self) -> bool:
        return self.disk_type == SYNC_FLUSH


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    delete_when: str = setting(
        "deleteWhen",
        "Hours of the day at which old files are deleted, separated by semicolons.",
        default="04",
        live=True,
    )
    reserved_hours: int = setting(
        "fileReservedTime", "Hours that a log file is kept.", default=72, low=0, live=True
    )
    disk_max_used_percent: int = setting(
        "diskMaxUsedSpaceRatio",
        "Percentage of disk usage above which expired files are deleted at once.",
        default=75,
        low=10,
        high=95,
        live=True,
    )
    disk_warning_percent: int = setting(
        "diskSpaceWarningLevelRatio",
        "Percentage of disk usage above which sends are refused.",
        default=90,
        low=35,
        high=90,
        live=True,
    )
    disk_forcible_percent: int = setting(
        "diskSpaceCleanForciblyRatio",
        "Percentage of disk usage above which the oldest files are deleted whatever their age.",
        default=85,
        low=30,
        high=85,
        live=True,
    )
    clean_forcibly: bool = setting(
        "cleanFileForciblyEnable",
        "Whether the oldest files may be deleted early when the disk fills up.",
        default=True,
        live=True,
    )
    delete_interval_ms: int = setting(
        "deleteCommitLogFilesInterval",
        "Milliseconds between two deletions of log files.",
        default=100,
        low=0,
        live=True,
    )
    queue_delete_interval_ms: int = setting(
        "deleteConsumeQueueFilesInterval",
        "Accepted for compatibility with RocketMQ's configurations; consume queue files are deleted without a pause.",
        default=100,
        low=0,
        live=True,
    )
    delete_batch_max: int = setting(
        "deleteFileBatchMax",
        "Maximum number of log files deleted in one run.",
        default=10,
        low=1,
        live=True,
    )
    clean_interval_ms: int = setting(
        "cleanResourceInterval",
        "Accepted for compatibility with RocketMQ's configurations; the store is cleaned up every ten seconds.",
        default=10_000,
        low=100,
        next_start=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfig:
    memory_bytes_max: int = setting(
        "maxTransferBytesOnMessageInMemory",
        "Maximum number of bytes per pull when the messages are in memory.",
        default=256 * KIB,
        low=1,
        live=True,
    )
    memory_count_max: int = setting(
        "maxTransferCountOnMessageInMemory",
        "Maximum number of messages per pull when they are in memory.",
        default=32,
        low=1,
        live=True,
    )
    disk_bytes_max: int = setting(
        "maxTransferBytesOnMessageInDisk",
        "Maximum number of bytes per pull when the messages come from disk.",
        default=64 * KIB,
        low=1,
        live=True,
    )
    disk_count_max: int = setting(
        "maxTransferCountOnMessageInDisk",
        "Maximum number of messages per pull when they come from disk.",
        default=8,
        low=1,
        live=True,
    )
    memory_percent: int = setting(
        "accessMessageInMemoryMaxRatio",
        "Percentage of physical memory that is assumed to cache the newest messages.",
        default=40,
        low=0,
        high=100,
        live=True,
    )
    check_crc: bool = setting(
        "checkCrcOnRead",
        "Check a record before it is handed out: its structure and the checksum of its body. A damaged one is not "
        "delivered.",
        default=True,
        live=True,
    )
    unchecked_bytes: int = setting(
        "checkCrcHotBytes",
        "What this process appended among the last bytes of the log is in memory and handed out without a check; at "
        "most accessMessageInMemoryMaxRatio. 0 checks every read.",
        default=256 * MIB,
        low=0,
        live=True,
    )
    check_marks: bool = setting(
        "forceVerifyPropCRC",
        "Also check the property __CRC32# of records that have one: the checksum of the whole record, which "
        "RocketMQ 5 writes with enabledAppendPropCRC.",
        default=False,
        live=True,
    )
    heal_wait_ms: int = setting(
        "healWaitMillis",
        "Milliseconds that readers wait for a replica to heal a damaged record before they go on without it.",
        default=5000,
        low=0,
        live=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    root: str = setting("storePathRootDir", "Data directory.", default="")
    log_directory: str = setting(
        "storePathCommitLog", "Log directory; if empty, commitlog below the root.", default=""
    )
    log: CommitLogConfig = field(default_factory=CommitLogConfig)
    queues: ConsumeQueueConfig = field(default_factory=ConsumeQueueConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    flush: FlushConfig = field(default_factory=FlushConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    read: ReadConfig = field(default_factory=ReadConfig)

    def __post_init__(self) -> None:
        if "," in self.log_directory:
            raise ConfigError(
                f"storePathCommitLog={self.log_directory!r}: a log spread over several directories "
                "is not supported; name one directory"
            )

    def path(self, name: str) -> str:
        """A file or directory below the root."""
        return f"{self.root}/{name}"

    @property
    def log_path(self) -> str:
        return self.log_directory or self.path(LOG_DIRECTORY)
