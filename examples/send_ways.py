"""Three ways to send: wait for the broker, let the send run in the background, or wait for nothing.

$ python examples/send_ways.py
send         SEND_OK
send_soon    100 x SEND_OK
send_oneway  no answer
"""

import os

from cometmq.client import Message
from cometmq.client.sync import Producer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

with Producer("sending", name_servers=NAME_SERVERS) as producer:
    # Returns when the broker has stored the message, and raises an error if that is not certain.
    sent = producer.send(Message(topic="SendWays", body=b"important"))
    print("send        ", sent.status)

    # Returns a concurrent.futures.Future at once. Many of them are under way at the same time.
    futures = [producer.send_soon(Message(topic="SendWays", body=b"fast")) for _ in range(100)]
    [status] = {future.result().status for future in futures}
    print("send_soon   ", len(futures), "x", status)

    # For what may get lost, such as a reading that the next second replaces.
    producer.send_oneway(Message(topic="SendWays", body=b"a reading"))
    print("send_oneway  no answer")
