"""A slave's tables follow its master's: asks for them again and again, and carries out what ``metadata`` decides.

    topics, groups                replaced when the master's version is another; queues of deleted topics go, too
    consumer offsets              the master's, after it was given what groups have committed here meanwhile
    delay offsets, timers         noted for the day on which this broker becomes the master
    request modes                 replaced
    timer metrics                 kept for a RocketMQ broker that takes over the store
    lanes of sinks                noted for the day on which this broker becomes the master
    accounts                      replaced, if this broker keeps any

How far the master has delivered is believed no sooner than this broker's log holds what was delivered: otherwise a
promotion would lose messages whose delivered copies never came. Bodies are decoded in a worker thread and taken over
in portions, so that tables of any size do not hold up the event loop, to which everything else here belongs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

import msgspec

from cometmq.access.accounts.sealed_table import Exchange
from cometmq.base.errors import CometError
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.core import BrokerCore
from cometmq.broker.replication.metadata import sync_plan
from cometmq.broker.replication.metadata.answers import (
    Offsets,
    decode_offsets,
    decode_page,
    log_end,
)
from cometmq.broker.replication.metadata.paged_copy import PagedCopy, PageQuestion
from cometmq.broker.replication.metadata.stray_commits import Commit, StrayCommits
from cometmq.broker.replication.metadata.sync_plan import Question, SyncPlan
from cometmq.protocol.bodies.admin import TimerMetrics
from cometmq.protocol.bodies.pop import MessageRequestModes
from cometmq.protocol.bodies.topic import encode_data_version
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.admin import (
    GetAllGroupConfigHeader,
    GetAllGroupConfigReply,
    GetAllTopicConfigHeader,
    GetAllTopicConfigReply,
)
from cometmq.protocol.headers.offsets import UpdateConsumerOffsetHeader
from cometmq.protocol.reply_errors import error_for
from cometmq.store.meta.config_table import ConfigTable, TableEntry
from cometmq.store.meta.sink_lanes import SinkLanesContent

log = logging.getLogger("cometmq.broker")

COMMITS_AT_ONCE: Final = 64

T = TypeVar("T", bound=msgspec.Struct)
Returned = TypeVar("Returned")


class DelayedDeliveries(Protocol):
    """What is needed of ``Schedule``."""

    def take_over(self, content: bytes, log_offset: int) -> Callable[[], None] | None: ...


class TimedDeliveries(Protocol):
    """What is needed of ``TimedMessages``."""

    def take_over(self, checkpoint: bytes) -> Callable[[], None] | None: ...


class SinkLanes(Protocol):
    """What is needed of ``SinkKeeper``."""

    def follow(self) -> None: ...

    def told(self, content: SinkLanesContent) -> Callable[[], None] | None: ...

    def cut(self, log_end: int) -> None: ...


class AccountsOfMaster(Protocol):
    """What is needed of ``AccountKeeper``."""

    def exchange(self) -> Exchange: ...

    async def take_over(self, body: bytes) -> None: ...


class Caller(Protocol):
    """What is needed of ``RemotingClient``."""

    async def call(self, address: str, command: Command, timeout: float = ...) -> Command: ...


class _Held(NamedTuple):
    """An answer about deliveries, until the log has come as far as the master's was when it gave it."""

    body: bytes
    log_offset: int
    """Where our own log ended before we asked."""
    master_end: int | None = None


class _Outdated(Exception):
    """While an answer was under way, another master came, or none."""


class MetadataSync:
    """``start`` it once, ``follow`` any number of masters, ``stop`` it once; all on the same event loop.

    Args:
        delays: how far delay levels are delivered.
        timers: the same of messages with a time of delivery.
        sinks: what sinks that write every row once have written.
        accounts: users and acls; None if this broker keeps none.
    """

    def __init__(
        self,
        *,
        core: BrokerCore,
        delays: DelayedDeliveries,
        timers: TimedDeliveries,
        sinks: SinkLanes,
        client: Caller,
        accounts: AccountsOfMaster | None = None,
        period_seconds: float = sync_plan.PERIOD_SECONDS,
    ) -> None:
        """Raises CorruptFile when the commits that a master still has to get cannot be read."""
        self._core = core
        self._delays = delays
        self._timers = timers
        self._sinks = sinks
        self._accounts = accounts
        self._client = client
        self._period_seconds = period_seconds
        self._plan = SyncPlan()
        self._master: str | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._taken_topics: frozenset[str] = frozenset()
        self._digests: dict[Question, bytes] = {}
        self._offsets_count = -1
        self._is_unsaved = False
        self._held: dict[Question, _Held] = {}
        self._steps: Mapping[Question, Callable[[str], Awaitable[None]]] = {
            sync_plan.TOPICS: self._topics,
            sync_plan.OFFSETS: self._offsets,
            sync_plan.DELAYS: partial(self._hold, sync_plan.DELAYS),
            sync_plan.GROUPS: self._groups,
            sync_plan.MODES: self._modes,
            sync_plan.TIMER_METRICS: self._timer_metrics,
            sync_plan.TIMERS: partial(self._hold, sync_plan.TIMERS),
            sync_plan.LOG_END: self._take_held,
            sync_plan.SINKS: self._sink_lanes,
            sync_plan.ACCOUNTS: self._account_table,
        }
        self._config_directory = core.live.current.store.path("config")
        self._strays = StrayCommits(self._config_directory, core.files)
        self._strays.load()
        self.role_changed(core.live.current)
        core.live.on_change(self.role_changed)
        core.offsets.on_commit = self._committed

    @property
    def stray_count(self) -> int:
        """Commits made here that the master has yet to get."""
        return len(self._strays)

    def start(self) -> None:
        """Raises CorruptFile, DiskFull: what a promotion would need of the sinks cannot be kept."""
        if self._task is None:
            self._sinks.follow()
            self._task = asyncio.get_running_loop().create_task(
                self._run(), name="cometmq-metadata"
            )

    def follow(self, master_address: str | None) -> None:
        """Ask the master at ``host:port``, its main port, from now on; or nobody."""
        if master_address != self._master:
            self._master = master_address
            self._plan.begin()
            self._digests.clear()
            self._held.clear()
            self._wake.set()

    def cut(self, log_end: int) -> None:
        """This slave's log was cut. Raises CorruptFile, DiskFull."""
        self._sinks.cut(log_end)

    async def stop(self) -> None:
        """Ask no more, and save what a master still has to get."""
        self._master = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._save_strays()

    async def sync_now(self) -> None:
        """One round with the current master; what fails is logged and left out."""
        if (master := self._master) is None:
            return
        for question in sync_plan.ROUND:
            try:
                await self._steps[question](master)
            except _Outdated:
                return
            except CometError as error:
                if (cause := self._plan.failed(question, error)) is not None:
                    log.warning(
                        "not synced what=%s master=%s reason=%s", question.what, master, cause
                    )
                if self._plan.ends_round(error):
                    return
            else:
                self._plan.succeeded(question)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.sync_now()
                await self._save_strays()
            except Exception:
                log.exception("metadata not synced master=%s", self._master)
            try:
                async with asyncio.timeout(self._period_seconds):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _topics(self, master: str) -> None:
        def question(page: PageQuestion) -> dict[str, str]:
            version = encode_data_version(page.version).decode()
            return encode_fields(
                GetAllTopicConfigHeader(
                    topic_seq=page.start, data_version=version, max_topic_num=page.size
                )
            )

        def total(reply: Command) -> int | None:
            return decode_fields(GetAllTopicConfigReply, reply.ext).total_topic_num

        table = self._core.topics
        copied = await self._copy(master, sync_plan.TOPICS, table, question, total)
        if copied is None:
            self._taken_topics = self._taken_topics or frozenset(table.names())
            return
        copy, _ = copied
        gone = await self._in_portions(master, table.replacing(copy.entries, copy.version))
        log.info("topics synced count=%d gone=%d master=%s", len(table), len(gone), master)
        # Topics that the master never told of may be as new as their first records in the log.
        deleted = sorted(self._taken_topics & set(gone))
        self._taken_topics = frozenset(copy.entries)
        for topic in deleted:
            self._core.store.delete_topic(topic)
            self._core.stats.forget_topic(topic)
            await asyncio.sleep(0)

    async def _groups(self, master: str) -> None:
        def question(page: PageQuestion) -> dict[str, str]:
            version = encode_data_version(page.version).decode()
            return encode_fields(
                GetAllGroupConfigHeader(
                    group_seq=page.start, data_version=version, max_group_num=page.size
                )
            )

        def total(reply: Command) -> int | None:
            return decode_fields(GetAllGroupConfigReply, reply.ext).total_group_num

        table = self._core.groups
        copied = await self._copy(master, sync_plan.GROUPS, table, question, total)
        if copied is None:
            return
        copy, others = copied
        gone = await self._in_portions(master, table.replacing(copy.entries, copy.version))
        # In the same turn of the loop as the last portion: part of the same change.
        forbidden = others.get("forbiddenTable")
        table.replace_forbidden(forbidden if isinstance(forbidden, dict) else {})
        log.info("groups synced count=%d gone=%d master=%s", len(table), len(gone), master)
        for group in gone:
            self._core.stats.forget_group(group)
            await asyncio.sleep(0)

    async def _copy(
        self,
        master: str,
        what: Question,
        table: ConfigTable[T],
        question: Callable[[PageQuestion], dict[str, str]],
        total: Callable[[Command], int | None],
    ) -> tuple[PagedCopy[TableEntry[T]], dict[str, Any]] | None:
        """The master's table and what came with it; None if it is the one that we have."""
        copy = PagedCopy[TableEntry[T]](table.version, len(table))
        others: dict[str, Any] = {}
        while copy.question is not None:
            reply = await self._ask(master, what, question(copy.question))
            page, others = await self._decoded(
                master, partial(decode_page, table, bytes(reply.body), total(reply))
            )
            copy.came(page)
        return None if copy.is_unchanged else (copy, others)

    async def _offsets(self, master: str) -> None:
        offsets, strays = self._core.offsets, self._strays
        body = bytes((await self._ask(master, sync_plan.OFFSETS)).body)
        is_same = self._is_known(sync_plan.OFFSETS, body)
        if is_same and offsets.change_count == self._offsets_count and not strays:
            return
        table = await self._decoded(master, partial(decode_offsets, body))
        await self._give_back(master, table)
        await self._in_portions(master, offsets.replacing(table))
        for portion in strays.portions(COMMITS_AT_ONCE):
            for place, offset in portion:
                # Committed in the meantime. The master gets it in the next round.
                offsets.commit(*place, offset)
            await asyncio.sleep(0)
            self._check(master)
        self._taken(sync_plan.OFFSETS, body)
        self._offsets_count = offsets.change_count

    async def _give_back(self, master: str, table: Offsets) -> None:
        """Commit at the master what was committed here and is ahead of its ``table``, which then has it, too."""
        given = 0
        refusals: dict[str, int] = {}
        for portion in self._strays.portions(COMMITS_AT_ONCE):
            ahead = self._strays.settle(portion, table)
            given += len(ahead)
            replies = await asyncio.gather(*(self._commit(master, one) for one in ahead))
            # Nothing was waited for if none is ahead.
            await asyncio.sleep(0)
            self._check(master)
            for commit, reply in zip(ahead, replies, strict=True):
                self._strays.done(commit)
                if reply.code == ResponseCode.SUCCESS:
                    place = commit.place
                    queues = table.setdefault(f"{place.topic}@{place.group}", {})
                    queues[place.queue_id] = commit.offset
                else:
                    cause = str(error_for(reply, master))
                    refusals[cause] = refusals.get(cause, 0) + 1
        for cause, count in refusals.items():
            log.warning("commits made here not taken count=%d reason=%s", count, cause)
        if given:
            log.info("commits made here given to the master count=%d master=%s", given, master)

    async def _commit(self, master: str, commit: Commit) -> Command:
        group, topic, queue_id = commit.place
        header = UpdateConsumerOffsetHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=commit.offset
        )
        request = Command(RequestCode.UPDATE_CONSUMER_OFFSET, encode_fields(header))
        return await self._client.call(master, request, sync_plan.OFFSETS.seconds_max)

    async def _modes(self, master: str) -> None:
        body = await self._new_body(master, sync_plan.MODES)
        if body is not None:
            modes = await self._decoded(master, partial(MessageRequestModes.decode, body))
            self._core.modes.replace_all(modes)
            self._taken(sync_plan.MODES, body)

    async def _timer_metrics(self, master: str) -> None:
        body = await self._new_body(master, sync_plan.TIMER_METRICS)
        if body is not None:
            await self._decoded(master, partial(TimerMetrics.decode, body))
            path = f"{self._config_directory}/timermetrics"
            await asyncio.to_thread(self._core.files.replace, path, body)
            self._taken(sync_plan.TIMER_METRICS, body)

    async def _sink_lanes(self, master: str) -> None:
        body = bytes((await self._ask(master, sync_plan.SINKS)).body)
        write = self._sinks.told(
            await self._decoded(master, partial(SinkLanesContent.decode, body))
        )
        if write is not None:
            await asyncio.to_thread(write)

    async def _account_table(self, master: str) -> None:
        if self._accounts is None:
            return
        exchange = self._accounts.exchange()
        sealed = bytes((await self._ask(master, sync_plan.ACCOUNTS, exchange.ext)).body)
        body = await self._decoded(master, partial(exchange.opened, sealed))
        if not self._is_known(sync_plan.ACCOUNTS, body):
            await self._accounts.take_over(body)
            self._taken(sync_plan.ACCOUNTS, body)

    async def _hold(self, question: Question, master: str) -> None:
        log_offset = self._core.store.max_physical
        body = await self._new_body(master, question)
        # One that waits for the log already comes first, or a log that is always behind would get none.
        if body is not None and question not in self._held:
            self._held[question] = _Held(body, log_offset)

    async def _take_held(self, master: str) -> None:
        if any(held.master_end is None for held in self._held.values()):
            end = log_end(bytes((await self._ask(master, sync_plan.LOG_END)).body))
            for question, held in self._held.items():
                if held.master_end is None:
                    self._held[question] = held._replace(master_end=end)
        failed: CometError | None = None
        for question, held in list(self._held.items()):
            if held.master_end is not None and self._core.store.max_physical >= held.master_end:
                del self._held[question]
                try:
                    await self._take(question, held)
                except CometError as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    async def _take(self, question: Question, held: _Held) -> None:
        if question == sync_plan.DELAYS:
            write = self._delays.take_over(held.body, held.log_offset)
        else:
            write = self._timers.take_over(held.body)
        if write is not None:
            await asyncio.to_thread(write)
        self._taken(question, held.body)

    async def _new_body(self, master: str, question: Question) -> bytes | None:
        """The answer to a question; None if it is the one that was taken over last."""
        body = bytes((await self._ask(master, question)).body)
        return None if self._is_known(question, body) else body

    def _is_known(self, question: Question, body: bytes) -> bool:
        """Whether it is the answer that was taken over last."""
        return self._digests.get(question) == sha256(body).digest()

    def _taken(self, question: Question, body: bytes) -> None:
        self._digests[question] = sha256(body).digest()

    async def _ask(
        self, master: str, question: Question, ext: dict[str, str] | None = None
    ) -> Command:
        reply = await self._client.call(master, Command(question.code, ext), question.seconds_max)
        self._check(master)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, master)
        return reply

    async def _decoded(self, master: str, decode: Callable[[], Any]) -> Any:
        decoded = await asyncio.to_thread(decode)
        self._check(master)
        return decoded

    async def _in_portions(self, master: str, steps: Generator[None, None, Returned]) -> Returned:
        """What the steps return; everybody else goes on between two of them."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(Returned, end.value)
            await asyncio.sleep(0)
            self._check(master)

    def _check(self, master: str) -> None:
        """Raises _Outdated if this master's tables are none of our concern any more."""
        if self._master != master or not self._core.live.current.identity.is_slave:
            raise _Outdated

    def _committed(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        if self._core.live.current.identity.is_slave:
            self._strays.note(group, topic, queue_id, offset)

    def role_changed(self, config: BrokerConfig) -> None:
        """What is kept for a master is of no use to a broker that is one itself."""
        if config.identity.is_slave or not self._strays:
            return
        self._strays.forget_all()
        # At once, and on the loop: as a slave of another master, later, this broker must not remember them.
        if (write := self._strays.unsaved()) is not None:
            self._note_saved(write)

    async def _save_strays(self) -> None:
        if (write := self._strays.unsaved()) is not None:
            await asyncio.to_thread(self._note_saved, write)

    def _note_saved(self, write: Callable[[], None]) -> None:
        try:
            write()
        except (CometError, OSError) as error:
            if not self._is_unsaved:
                log.warning(
                    "commits for the master not saved reason=%s; they will be tried again", error
                )
            self._is_unsaved = True
        else:
            self._is_unsaved = False

    def __repr__(self) -> str:
        return f"<MetadataSync master={self._master} strays={len(self._strays)}>"
