"""Ask for messages instead of being called with them: for jobs that decide when they work, and where they begin.

$ python examples/pull.py
the job read 10 readings
the replay of one queue begins at offset 0
"""

import os

from cometmq.client import LitePullConfig, Message
from cometmq.client.sync import LitePullConsumer, Producer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
FROM_START = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")

with Producer("meters", name_servers=NAME_SERVERS) as producer:
    [queue, *_] = [
        producer.send(Message(topic="PullExample", body=b"reading %d" % number)).queue
        for number in range(10)
    ]

# 1. subscribe: the members of a group share the queues, and the broker remembers how far the group is.
with LitePullConsumer("nightly-job", name_servers=NAME_SERVERS, config=FROM_START) as job:
    job.subscribe("PullExample")
    count = 0
    while count < 10:
        count += len(job.poll(timeout=10))
print("the job read", count, "readings")

# 2. assign: this queue and no other, from any place in it. Nobody else is disturbed.
with LitePullConsumer("replay", name_servers=NAME_SERVERS) as replay:
    replay.assign([queue])
    replay.seek_to_begin(queue)
    first = replay.poll(timeout=10)[0]
    print("the replay of one queue begins at offset", first.queue_offset)
