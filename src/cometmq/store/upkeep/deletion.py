"""Carries out the decisions of ``retention``, and deletion on request: log files first, then what pointed to them.

Thread rule: the owner of the store; unlinking happens in ``file_remover``'s thread.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from cometmq.base.errors import DiskFull
from cometmq.base.ports import Clock, Files
from cometmq.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from cometmq.store.index.index_files import IndexFiles
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.deleted_topics import DeletedTopics
from cometmq.store.store_config import RetentionConfig, StoreConfig
from cometmq.store.upkeep.file_remover import FileRemover
from cometmq.store.upkeep.retention import Retention

logger = logging.getLogger("cometmq.store")


class Housekeeping:
    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: ConsumeQueues,
        index: IndexFiles | None,
        deleted: DeletedTopics,
        files: Files,
        clock: Clock,
    ) -> None:
        self.in_background = False
        self._config = config.retention
        self._log = log
        self._queues = queues
        self._index = index
        self._deleted = deleted
        self._files = files
        self._retention = Retention(config.retention, clock)
        self._remover = FileRemover(files)

    @property
    def is_disk_full(self) -> bool:
        return self._retention.is_disk_full

    def apply(self, config: RetentionConfig) -> None:
        self._retention.apply(config)
        self._config = config

    def ask(self) -> None:
        """Delete expired files in the next runs."""
        self._retention.ask()

    def watch_disk(self) -> None:
        self._retention.watch_disk(self._used_ratio())

    def run(self, durable_offset: int) -> None:
        """One round of retention.

        Args:
            durable_offset: log and queue entries below it are on disk. A file above it is kept: without it, a queue
                that loses its unsynced entries could not be rebuilt, and would assign its offsets again.
        """
        if self._remover.is_busy:
            return
        self._prune_deleted()
        log_files = self._log.row.files
        modified_ms = [self._files.modified_ms(one.path) for one in log_files]
        deletion = self._retention.plan(modified_ms, self._used_ratio())
        count = deletion.count
        while count and log_files[count - 1].start + self._log.file_bytes > durable_offset:
            count -= 1
        if count:
            logger.info("log files expire count=%d reason=%s", count, deletion.reason)
            pause_seconds = self._config.delete_interval_ms / 1000
            self._remove(self._log.drop_first(count), pause_seconds)
            self._follow_log()

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete topics, durably. Raises DiskFull before anything is deleted."""
        known = [topic for topic in topics if topic in self._queues.table]
        if not known:
            return
        self._deleted.note(known, self._log.end)
        for topic in known:
            count = self._queues.delete_topic(topic)
            logger.info("topic deleted topic=%s queues=%d", topic, count)

    def delete_expired_queues(self) -> None:
        """Delete queues without any record left. Their offsets start again at 0, as in RocketMQ."""
        start = self._log.start
        for queue in list(self._queues.all()):
            if queue.topic in (SCHEDULE_TOPIC, TIMER_TOPIC) or queue.next_offset == 0:
                continue
            last = queue.entry(queue.next_offset - 1, self._queues.open_files)
            if last is not None and last[0] < start:
                logger.info("queue deleted topic=%s queue=%d", queue.topic, queue.queue_id)
                self._queues.delete_queue(queue)

    def stop(self) -> None:
        self._remover.stop()

    def _follow_log(self) -> None:
        start = self._log.start
        expired = [
            path
            for queue in self._queues.all()
            for path in self._queues.expired_files(queue, start)
        ]
        # Small and sparse: no pause is needed between them.
        for path in expired:
            self._files.remove(path)
        if self._index is not None:
            self._index.delete_before(start)

    def _prune_deleted(self) -> None:
        """Forget deleted topics that no log file holds any more, judging by the directory, not by memory."""
        if not self._deleted:
            return
        names = [name for name in self._files.names(self._log.row.directory) if name.isdecimal()]
        try:
            self._deleted.prune(int(names[0]) if names else 0, self._log.end)
        except DiskFull as error:
            logger.warning("deleted topics not pruned error=%s", error)

    def _remove(self, paths: list[str], pause_seconds: float) -> None:
        self._remover.remove(paths, pause_seconds, in_background=self.in_background)

    def _used_ratio(self) -> float:
        return max(
            self._files.used_ratio(self._log.row.directory),
            self._files.used_ratio(self._queues.directory),
        )
