"""All rooms of a broker, built in order: each takes the core, and the doors of earlier rooms that it needs.

``server`` puts them behind real ports; ``cometmq.testing.memory_broker`` behind none, on a fake clock and disk.
"""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.broker.access.may_touch import (
    AccountOf,
    MayPublish,
    MayTouch,
    everybody_may,
    everybody_may_publish,
    nobody_known,
)
from cometmq.broker.admin.admin_replies import Saved
from cometmq.broker.admin.admin_room import AdminRoom
from cometmq.broker.admin.topic_requests import Announce
from cometmq.broker.clients.assignment_requests import QueuesOf
from cometmq.broker.clients.client_room import ClientRoom
from cometmq.broker.core import BrokerCore
from cometmq.broker.filters.functions.pool import FilterFunctions
from cometmq.broker.master_duties import Duty
from cometmq.broker.pop.pop_room import PopRoom
from cometmq.broker.pull.pull_room import PullRoom
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.schedule.schedule_room import open_schedule
from cometmq.broker.send.send_room import SendRoom
from cometmq.broker.sink.sink_room import SinkRoom
from cometmq.broker.timer.timer_room import TimerRoom
from cometmq.broker.transaction.transaction_room import TransactionRoom


class Rooms:
    """
    Args:
        saved: returns once every change made to the tables so far is on disk.
        announce: tells the name servers of changed topics and returns when they know, or did not answer.
        queues_of: the readable queues of a topic on all brokers, empty when nobody knows the topic.
        may_touch: checks the topic of a record that a request names by its place.
        may_publish: whether the account behind a connection may publish to a topic.
        account_of: the account behind a connection.

    Raises:
        CorruptFile: a table of a room cannot be read.
    """

    def __init__(
        self,
        core: BrokerCore,
        *,
        saved: Saved,
        announce: Announce,
        queues_of: QueuesOf,
        may_touch: MayTouch = everybody_may,
        may_publish: MayPublish = everybody_may_publish,
        account_of: AccountOf = nobody_known,
    ) -> None:
        self.functions = FilterFunctions(core.live.current.filters, core.clock)
        self.schedule = open_schedule(core)
        self.timer = TimerRoom(core)
        self.transaction = TransactionRoom(core, may_touch, may_publish)
        self.sink = SinkRoom(core)
        self.send = SendRoom(
            core,
            schedule=self.schedule,
            timed=self.timer.timed,
            transactions=self.transaction.transactions,
            sinks=self.sink,
            may_touch=may_touch,
        )
        self.pull = PullRoom(core, functions=self.functions, may_touch=may_touch)
        self.pop = PopRoom(core)
        self.clients = ClientRoom(
            core,
            functions=self.functions,
            saved=saved,
            queues_of=queues_of,
            account_of=account_of,
        )
        self.admin = AdminRoom(
            core,
            delays=self.schedule,
            flow=self.send.flow,
            wake=self.pull.long_polling.wake,
            announce=announce,
            saved=saved,
        )

    def register(self, ports: RequestPorts) -> None:
        """Have the requests of all rooms served."""
        for room in (
            self.send,
            self.pull,
            self.pop,
            self.timer,
            self.transaction,
            self.sink,
            self.clients,
            self.admin,
        ):
            room.register(ports)

    @property
    def duties(self) -> Sequence[Duty]:
        """What only a master does, in the order in which it is taken up."""
        return (
            # First, since it looks at the end of the log for what a crash has cut off.
            self.transaction.transactions,
            self.schedule,
            self.timer.timed,
            self.pop,
            self.sink.keeper,
        )
