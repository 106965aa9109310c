"""Keys while one of two brokers is away: normal order goes on sending, strict order keeps the order.

Normal order: the keys of the lost broker move to the queues that are left, where their messages can overtake those that
wait at the lost broker. Strict order: name servers keep a fixed list of the topic's queues. The keys of the lost broker
cannot be sent until it is back.

$ python examples/strict_order.py
normal: 0 of 12 keys refused, 8 moved to another queue
strict: 8 of 12 keys refused, 0 moved to another queue

The example starts two brokers of its own: it needs no `cometmq up`.
"""

import time

from cometmq.admin import new_topic
from cometmq.admin.sync import Admin
from cometmq.client import CometError, Message, MessageQueue, ProducerConfig
from cometmq.client.sync import Producer
from cometmq.testing import cluster

KEYS = [f"order-{number}" for number in range(12)]
# Do not wait for a broker that may come back soon.
AT_ONCE = ProducerConfig(retries=0)


def send_all(topic: str, name_servers: str) -> dict[str, MessageQueue]:
    """Send a message for each key. The queue of each key that could be sent."""
    found = {}
    with Producer("shop", name_servers=name_servers, config=AT_ONCE) as producer:
        for key in KEYS:
            try:
                sent = producer.send(Message(topic=topic, body=b"a step"), sharding_key=key)
                found[key] = sent.queue
            except CometError:
                continue  # counted below
    return found


def wait_for_queues(admin: Admin, topic: str, count: int) -> None:
    while sum(one.write_queue_nums for one in admin.topics.route(topic).queue_datas) != count:
        time.sleep(0.05)


with cluster(masters=2) as servers, Admin(servers.name_servers) as admin:
    for topic in ("Normal", "Strict"):
        admin.topics.create(new_topic(topic, read_queues=2, write_queues=2)).raise_failed()
        wait_for_queues(admin, topic, 4)
    # The same with mqadmin: updateOrderConf -t Strict -m put -v "standalone:2;standalone-2:2"
    admin.name_servers.update_settings({"orderMessageEnable": "true"}).raise_failed()
    admin.kv.put("ORDER_TOPIC_CONFIG", "Strict", "standalone:2;standalone-2:2").raise_failed()

    before = {topic: send_all(topic, servers.name_servers) for topic in ("Normal", "Strict")}
    servers.run(servers.kill(servers.brokers[1]))
    wait_for_queues(admin, "Normal", 2)
    for topic in ("Normal", "Strict"):
        after = send_all(topic, servers.name_servers)
        refused = len(KEYS) - len(after)
        moved = sum(after[key] != before[topic][key] for key in after)
        print(
            f"{topic.lower()}: {refused} of {len(KEYS)} keys refused, {moved} moved to another queue"
        )
