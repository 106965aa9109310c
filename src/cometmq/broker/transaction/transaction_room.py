"""The root of the room for transactions: the open ones, who is asked about them, and the request that ends one."""

from __future__ import annotations

from cometmq.broker.access.may_touch import MayPublish, MayTouch
from cometmq.broker.core import BrokerCore
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.transaction.questions import ProducerQuestions
from cometmq.broker.transaction.transaction_processor import TransactionProcessor
from cometmq.broker.transaction.transactions import Transactions


class TransactionRoom:
    """
    Args:
        may_touch: checks the topic of a half message that a request is about.
        may_publish: whether the account behind a connection may publish to a topic.
    """

    def __init__(self, core: BrokerCore, may_touch: MayTouch, may_publish: MayPublish) -> None:
        self.transactions = Transactions(
            live=core.live,
            store=core.store,
            offsets=core.offsets,
            topics=core.creation,
            questions=ProducerQuestions(core.clients, core.broker_name, may_publish),
            stats=core.stats,
            clock=core.clock,
        )
        self._ends = TransactionProcessor(
            live=core.live,
            transactions=self.transactions,
            durability=core.durability,
            may_touch=may_touch,
        )

    def register(self, ports: RequestPorts) -> None:
        ports.serve(self._ends)
