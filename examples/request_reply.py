"""Send a request over a topic and wait for the reply.

$ python examples/request_reply.py
6 x 7 = 42
"""

import os

from cometmq.client import Message, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer, reply_to

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

with Producer("calculator-replies", name_servers=NAME_SERVERS) as replies:

    def multiply(request: ReceivedMessage) -> None:
        left, right = request.body.split(b" x ")
        replies.send(reply_to(request, b"%d" % (int(left) * int(right))))

    consumer = PushConsumer("calculators", listener=multiply, name_servers=NAME_SERVERS)
    consumer.subscribe("RequestExample")
    with consumer, Producer("askers", name_servers=NAME_SERVERS) as producer:
        reply = producer.request(Message(topic="RequestExample", body=b"6 x 7"), timeout=30)
        print("6 x 7 =", reply.body.decode())
