"""The blocking client: the same names and parameters as ``cometmq.client.aio``, for programs without an event loop.

Values and settings are in ``cometmq.client``. All clients of a process share one event loop in a background thread.
"""

from cometmq.client.aio.pull.pull_call import PullResult, PullStatus
from cometmq.client.aio.send.producer import PartlySent
from cometmq.client.aio.send.request_reply import reply_to
from cometmq.client.aio.send.transaction_producer import TransactionResult, TransactionState
from cometmq.client.sync.lite_pull_consumer import LitePullConsumer
from cometmq.client.sync.producer import Producer
from cometmq.client.sync.pull_consumer import PullConsumer
from cometmq.client.sync.pull_schedule import PullSchedule, Turn
from cometmq.client.sync.push_consumer import PushConsumer
from cometmq.client.sync.transaction_producer import TransactionProducer

__all__ = [
    "LitePullConsumer",
    "PartlySent",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PullSchedule",
    "PullStatus",
    "PushConsumer",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "Turn",
    "reply_to",
]
