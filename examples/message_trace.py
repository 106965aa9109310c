"""Record what happens to a message, and read it again: where is my message?

$ python examples/message_trace.py
Pub        sent by trace-shop
SubBefore  given to a listener of trace-desk
SubAfter   done by trace-desk
"""

import os
import threading
import time

from cometmq.client import Message, ProducerConfig, PushConsumerConfig, ReceivedMessage, TraceConfig
from cometmq.client.sync import Producer, PushConsumer
from cometmq.model.trace import decode_traces

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
# A topic of our own: the default one exists where brokers run with traceTopicEnable=true.
TRACE = TraceConfig(is_trace_on=True, trace_topic="TraceRecords")

done = threading.Event()


def handle(message: ReceivedMessage) -> None:
    done.set()


with Producer("trace-shop", name_servers=NAME_SERVERS, config=ProducerConfig(trace=TRACE)) as shop:
    sent = shop.send(Message(topic="TraceExample", body=b"parcel 17"))

config = PushConsumerConfig(trace=TRACE)
consumer = PushConsumer("trace-desk", listener=handle, name_servers=NAME_SERVERS, config=config)
consumer.subscribe("TraceExample")
with consumer:
    done.wait(30)

with Producer("trace-readers", name_servers=NAME_SERVERS) as client:
    groups: dict[str, str | None] = {}
    while len(groups) < 3:
        time.sleep(0.1)  # consumers send their records a moment later
        for message in client.query("TraceRecords", sent.message_id):
            records = decode_traces(message.body.decode())
            groups |= {record.WORD: record.group for record in records}

print("Pub        sent by", groups["Pub"])
print("SubBefore  given to a listener of", groups["SubBefore"])
print("SubAfter   done by", groups["SubAfter"])
