"""The root of the room where messages are read: pulls and those that wait, positions of groups, lookups."""

from __future__ import annotations

from cometmq.broker.access.may_touch import MayTouch
from cometmq.broker.core import BrokerCore
from cometmq.broker.filters.functions.pool import FilterFunctions
from cometmq.broker.pull.bulk_pull_processor import BulkPullProcessor
from cometmq.broker.pull.known_pulls import KnownPulls
from cometmq.broker.pull.offset_processor import OffsetProcessor
from cometmq.broker.pull.pull_processor import PullProcessor
from cometmq.broker.pull.query_processor import QueryProcessor
from cometmq.broker.request_ports import RequestPorts


class PullRoom:
    """
    Args:
        functions: judge messages for groups that filter by a Python function.
        may_touch: checks the topic of a record that is looked up by its place.
    """

    def __init__(
        self, core: BrokerCore, *, functions: FilterFunctions, may_touch: MayTouch
    ) -> None:
        self._pulls = PullProcessor(
            live=core.live,
            store=core.store,
            topics=core.topics,
            offsets=core.offsets,
            creation=core.creation,
            clients=core.clients,
            filters=core.filters,
            functions=functions,
            stats=core.stats,
            master=core.master,
            clock=core.clock,
            loop=core.loop,
            reached=core.reached,
            times=core.times,
        )
        self._known_pulls = KnownPulls(
            self._pulls,
            live=core.live,
            topics=core.topics,
            groups=core.groups,
            clients=core.clients,
            filters=core.filters,
            offsets=core.offsets,
            times=core.times,
        )
        self.long_polling = self._pulls.long_polling
        core.store.arrivals.append(self.long_polling)
        self._bulk_pulls = BulkPullProcessor(
            live=core.live, pulls=self._pulls, store=core.store, stats=core.stats
        )
        self._offsets = OffsetProcessor(
            offsets=core.offsets, topics=core.topics, creation=core.creation, store=core.store
        )
        self._queries = QueryProcessor(core.store, core.live, may_touch)

    def register(self, ports: RequestPorts) -> None:
        ports.serve_reads(self._pulls, self._known_pulls, self._bulk_pulls)
        ports.serve(self._offsets, self._queries)
        ports.on_close(self.long_polling.forget)
        ports.on_drain(self.long_polling.answer_all)
