"""Ship the log lines of a program to a topic, with Python's own logging.

$ python examples/log_to_topic.py
2 sent, 0 dropped
"""

import logging
import os

from cometmq.client.helpers.log_handler import TopicHandler

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

handler = TopicHandler("LogExample", name_servers=NAME_SERVERS, level=logging.WARNING)
handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
logging.getLogger().addHandler(handler)

orders = logging.getLogger("shop.orders")
orders.info("order 17 is created")  # below the handler's level
orders.warning("order 17 is late")
orders.error("order 17 is lost")

handler.close()  # the end of the program would do it, too
print(handler.sent, "sent,", handler.dropped, "dropped")
