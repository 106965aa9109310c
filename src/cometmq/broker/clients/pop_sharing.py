"""Which queues a client pops of. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.broker.pop.pop_topics import ANY_QUEUE
from cometmq.model.allocation import allocate
from cometmq.model.message_queue import MessageQueue


def share_for_pop(
    strategy: str,
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    share_count: int,
) -> list[MessageQueue]:
    """As RocketMQ shares them: no queue belongs to one client alone, so a slow client holds nothing up.

    Args:
        share_count: of how many clients behind it in the list a client takes queues, too; 0 or less: of all queues,
            which is one entry for each broker.
    """
    if share_count <= 0 or share_count >= len(client_ids) - 1:
        brokers = sorted({queue.broker_name for queue in queues})
        return [
            MessageQueue(topic=queues[0].topic, broker_name=broker, queue_id=ANY_QUEUE)
            for broker in brokers
        ]
    clients = sorted(client_ids)
    if client_id not in clients:
        return []
    if len(clients) > len(queues):
        # Each gets one, so that none is idle.
        return [sorted(queues)[clients.index(client_id) % len(queues)]]
    at = clients.index(client_id)
    near = [clients[(at + step) % len(clients)] for step in range(share_count + 1)]
    shared = {queue for one in near for queue in allocate(strategy, one, queues, clients) or ()}
    return sorted(shared)
