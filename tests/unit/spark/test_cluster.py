"""What a driver makes of a name server's answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.route import BrokerData, QueueData, TopicRoute
from cometmq.protocol.bodies.route import encode_route
from cometmq.protocol.command import Command
from cometmq.spark.cluster import Cluster
from cometmq.spark.options import ConnectionOptions


def test_a_route_that_cannot_be_true_is_refused_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queues = QueueData(broker_name="b", read_queue_nums=2**31 - 1, write_queue_nums=1)
    broker = BrokerData(cluster="c", broker_name="b", broker_addrs={0: "b:1"})
    body = encode_route(TopicRoute(queue_datas=[queues], broker_datas=[broker]), standard=True)

    def answer(self: Cluster, address: str, requests: Sequence[Command]) -> list[Command]:
        return [request.reply(body=body) for request in requests]

    monkeypatch.setattr(Cluster, "_call_all", answer)
    cluster = Cluster(ConnectionOptions(name_servers=("n:9876",)))
    with pytest.raises(
        RemoteProtocolError, match=r"name server n:9876 told of topic 'T'.* 2147483647 queues"
    ):
        cluster.queues("T")
