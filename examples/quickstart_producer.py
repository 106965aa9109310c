"""Send ten messages. Run quickstart_consumer.py first, or afterwards: the broker keeps them.

$ python examples/quickstart_producer.py
hello 0 SEND_OK
hello 1 SEND_OK
hello 2 SEND_OK
hello 3 SEND_OK
hello 4 SEND_OK
hello 5 SEND_OK
hello 6 SEND_OK
hello 7 SEND_OK
hello 8 SEND_OK
hello 9 SEND_OK
"""

import os

from cometmq.client import Message
from cometmq.client.sync import Producer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

with Producer("quickstart-producers", name_servers=NAME_SERVERS) as producer:
    for number in range(10):
        text = f"hello {number}"
        sent = producer.send(Message(topic="Quickstart", body=text.encode()))
        print(text, sent.status)
