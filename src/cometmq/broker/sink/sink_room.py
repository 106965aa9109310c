"""The root of the room for sinks that write every row once: the record, its keeper, and the requests of writers."""

from __future__ import annotations

from cometmq.broker.core import BrokerCore
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.sink.sink_keeper import SinkKeeper
from cometmq.broker.sink.sink_processor import SinkProcessor
from cometmq.broker.sink.sink_record import SinkRecord
from cometmq.store.meta.sink_lanes import SinkLanesFile


class SinkRoom:
    def __init__(self, core: BrokerCore) -> None:
        self.record = SinkRecord()
        self.keeper = SinkKeeper(
            record=self.record,
            store=core.store,
            file=SinkLanesFile(core.live.current.store.path("config"), core.files),
            clock=core.clock,
        )
        self._writers = SinkProcessor(record=self.record, keeper=self.keeper, store=core.store)

    def register(self, ports: RequestPorts) -> None:
        ports.serve(self._writers)
