"""Many messages in few requests.

$ python examples/batch.py
1 batch of 3 messages: SEND_OK
5000 messages in 5 batches
"""

import os

from cometmq.client import Message
from cometmq.client.sync import Producer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

with Producer("batches", name_servers=NAME_SERVERS) as producer:
    # One request: stored together, in order, in one queue. It must not be larger than the broker accepts (4 MiB).
    batch = [Message(topic="BatchExample", body=b"%d" % number) for number in range(3)]
    sent = producer.send_batch(batch)
    print("1 batch of", len(batch), "messages:", sent.status)

    # Any number of messages, split into such batches.
    many = [Message(topic="BatchExample", body=b"%d" % number) for number in range(5000)]
    results = producer.send_all(many)
    print(len(many), "messages in", len(results), "batches")
