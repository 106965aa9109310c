"""Print every message of a topic until Ctrl-C. Run quickstart_producer.py in another terminal.

$ python examples/quickstart_consumer.py
waiting; stop with Ctrl-C
hello 0
hello 1
...

Start it twice: the two share the messages, because they are members of the same group.
"""

import contextlib
import os
import threading

from cometmq.client import ReceivedMessage
from cometmq.client.sync import PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")


def show(message: ReceivedMessage) -> None:
    print(message.body.decode(), flush=True)


consumer = PushConsumer("quickstart-consumers", listener=show, name_servers=NAME_SERVERS)
consumer.subscribe("Quickstart")
with consumer, contextlib.suppress(KeyboardInterrupt):
    print("waiting; stop with Ctrl-C", flush=True)
    threading.Event().wait()
print("stopped")
