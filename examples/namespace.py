"""Two tenants use the same names on the same brokers and do not see each other.

$ python examples/namespace.py
blue got: for blue
green got: for green
"""

import os

from cometmq.client import ClientConfig, LitePullConfig, Message, ProducerConfig
from cometmq.client.sync import LitePullConsumer, Producer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
TENANTS = ("blue", "green")


def client(tenant: str) -> ClientConfig:
    return ClientConfig(name_servers=NAME_SERVERS, namespace=tenant)


for tenant in TENANTS:
    with Producer("tenant-shop", config=ProducerConfig(client=client(tenant))) as producer:
        # On the wire the topic is blue%NamespaceExample.
        producer.send(Message(topic="NamespaceExample", body=f"for {tenant}".encode()))

for tenant in TENANTS:
    config = LitePullConfig(client=client(tenant), consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    with LitePullConsumer("tenant-billing", config=config) as consumer:
        consumer.subscribe("NamespaceExample")
        [message] = consumer.poll(timeout=30)
        print(f"{tenant} got:", message.body.decode())
