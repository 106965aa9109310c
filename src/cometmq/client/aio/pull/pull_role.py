"""The role of a pull consumer in its client instance. Without a listener, brokers cannot make it consume anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.running import (
    ConsumeDirectlyResult,
    ConsumeResult,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)

Positions = dict[MessageQueue, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRole:
    """Implements ``roles.ConsumerRole`` with functions of the consumer. All names are wire names."""

    group: str
    message_model: MessageModel
    consume_from: ConsumeFromWhere
    wanted: Callable[[], list[SubscriptionData]]
    watched: Callable[[], Collection[str]]
    rebalance: Callable[[], None]
    current: Callable[[], Positions]
    reset: Callable[[Positions], Awaitable[None]]

    @property
    def consume_type(self) -> ConsumeType:
        return ConsumeType.CONSUME_ACTIVELY

    @property
    def retries_max(self) -> int | None:
        return None

    def subscriptions(self) -> list[SubscriptionData]:
        return self.wanted()

    def topics(self) -> Collection[str]:
        return self.watched()

    def rebalance_soon(self) -> None:
        self.rebalance()

    async def reset_offsets(self, topic: str, offsets: Positions) -> None:
        await self.reset({queue: at for queue, at in offsets.items() if queue.topic == topic})

    def positions(self, topic: str) -> Positions:
        return {queue: at for queue, at in self.current().items() if queue.topic == topic}

    def running_info(self) -> ConsumerRunningInfo:
        return ConsumerRunningInfo(
            subscription_set=self.wanted(),
            mq_table={
                queue: ProcessQueueInfo(commit_offset=at) for queue, at in self.current().items()
            },
        )

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str
    ) -> ConsumeDirectlyResult:
        return ConsumeDirectlyResult(
            consume_result=ConsumeResult.CR_THROW_EXCEPTION,
            remark=f"{self.group} pulls its messages itself; it has no listener to give one to",
        )
