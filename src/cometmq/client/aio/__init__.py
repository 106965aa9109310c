"""The client for asyncio. Values and settings are in ``cometmq.client``."""

from cometmq.client.aio.pull.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.pull.pull_call import PullResult, PullStatus
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.pull.pull_schedule import PullSchedule, Turn
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import PartlySent, Producer
from cometmq.client.aio.send.request_reply import reply_to
from cometmq.client.aio.send.transaction_producer import (
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
