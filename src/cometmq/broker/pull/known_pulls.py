"""Pulls whose header came before, but for queue, offsets and number: not decoded, and admitted once.

What a reader's pulls have in common is decided about as for single pulls, and decided anew after any change of what the
decision rests on. While somebody has to be told of a reset, and where a function filters, pulls are decoded as ever.
Needs the compiled twin, which cuts such pulls out of what is received.
"""

from __future__ import annotations

from typing import Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.filters.consumer_filters import ConsumerFilters
from cometmq.broker.filters.message_filter import MessageFilter
from cometmq.broker.pull.pull_processor import PullProcessor
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import RETRY_PREFIX
from cometmq.native.choice import twin
from cometmq.native.cut_pull import PULL, CutPull
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.header_json import decode_header
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.times.request_times import RequestTimes
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.read.cold import NotInMemory

_twin = twin("pulls")

_CODES: Final = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_SAMPLES: Final = {
    b'"queueId":"': 1_000_000_001,
    b'"queueOffset":"': 1_000_000_002,
    b'"commitOffset":"': 1_000_000_003,
    b'"opaque":': 1_000_000_004,
}
"""Numbers in the places of those that differ, to see that the header means them, and where they stand."""


class KnownPull:
    """What pulls with the same header have in common."""

    __slots__ = ("code", "group", "header", "queue_count", "version", "wanted")

    def __init__(self, code: int, header: PullMessageHeader) -> None:
        self.code = code
        self.header = header
        """With the numbers of the pull that is being answered."""
        self.version = -1
        """When it was admitted."""
        self.queue_count = 0
        self.group: SubscriptionGroupConfig
        self.wanted: MessageFilter


class KnownPulls:
    def __init__(
        self,
        pulls: PullProcessor,
        *,
        live: LiveConfig,
        topics: TopicTable,
        groups: GroupTable,
        clients: ClientRegistry,
        filters: ConsumerFilters,
        offsets: OffsetTable,
        times: RequestTimes,
    ) -> None:
        self._pulls = pulls
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._filters = filters
        self._offsets = offsets
        self._times = times
        self._config_changes = 0
        live.on_change(self._apply)

    def register(self, dispatcher: Dispatcher) -> None:
        if _twin is not None:
            dispatcher.take_pulls(_twin.PullCutter(learn, PULL), self.take)

    def take(self, connection: Connection, pull: CutPull) -> bool:
        """Answer a pull, unless it has to be decided about."""
        known: KnownPull = pull.known
        version = (
            self._topics.change_count
            + self._groups.change_count
            + self._clients.change_count
            + self._filters.change_count
            + self._config_changes
        )
        if known.version != version:
            if not self._admit(connection, known):
                return False
            known.version = version
        if pull.queue_id >= known.queue_count or self._offsets.has_resets:
            return False
        header = known.header
        header.queue_id = pull.queue_id
        header.queue_offset = pull.queue_offset
        header.commit_offset = pull.commit_offset
        try:
            answer = self._pulls.answer_admitted(
                connection, header, known.group, known.wanted, pull
            )
        except NotInMemory:
            return False
        if answer is not None and self._times.is_on:
            self._times.answered(known.code, answer)
        return True

    def _admit(self, connection: Connection, known: KnownPull) -> bool:
        header = known.header
        topic = self._topics.get(header.topic)
        # A group may come into being by being asked for.
        if topic is None or header.consumer_group not in self._groups:
            return False
        header.queue_id = 0
        try:
            known.group, known.wanted = self._pulls.admit(connection, header)
        except Refused:
            return False
        known.queue_count = topic.read_queue_nums
        return known.wanted.function is None

    def _apply(self, config: BrokerConfig) -> None:
        self._config_changes += 1


def learn(text: bytes) -> KnownPull | None:
    """What is to be known of a header, in which zero bytes stand in the places of numbers; None: nothing."""
    for name, number in _SAMPLES.items():
        text = text.replace(name + b"\0", b"%b%d" % (name, number))
    try:
        command = decode_header(text, b"")
        header = decode_fields(PullMessageHeader, command.ext)
    except RemoteProtocolError:
        return None
    numbers = header.queue_id, header.queue_offset, header.commit_offset, command.opaque
    if (
        numbers != tuple(_SAMPLES.values())
        or command.code not in _CODES
        or command.flag
        # Its filter follows from those of other topics.
        or header.topic.startswith(RETRY_PREFIX)
    ):
        return None
    return KnownPull(command.code, header)
