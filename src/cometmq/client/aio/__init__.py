"""The client for asyncio. Values and settings are in ``cometmq.client``."""

from cometmq.client.aio.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.producer import PartlySent, Producer
from cometmq.client.aio.pull_call import PullResult, PullStatus
from cometmq.client.aio.pull_consumer import PullConsumer
from cometmq.client.aio.pull_schedule import PullSchedule, Turn
from cometmq.client.aio.push_consumer import PushConsumer
from cometmq.client.aio.request_reply import reply_to
from cometmq.client.aio.transaction_producer import (
    TransactionProducer,
    TransactionResult,
    TransactionState,
)

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
