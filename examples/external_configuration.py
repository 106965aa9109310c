"""Settings from outside the program: from a file, and from the environment, which overrides the file.

$ python examples/external_configuration.py
SEND_OK with 5 retries, within 10000 ms
$ COMETMQ_SEND_MSG_TIMEOUT=2000 python examples/external_configuration.py
SEND_OK with 5 retries, within 2000 ms
"""

from pathlib import Path

from cometmq.client import Message, ProducerConfig, load_config
from cometmq.client.sync import Producer

# The program's own choice, which the file and the environment may override.
defaults = ProducerConfig(send_timeout_ms=10_000)

# Without an argument, the file is the one that the variable COMETMQ_CLIENT_CONFIG names.
config = load_config(defaults, Path(__file__).with_name("client.conf"))

with Producer("configured", config=config) as producer:
    sent = producer.send(Message(topic="ConfigurationExample", body=b"hello"))
    print(sent.status, "with", config.retries, "retries, within", config.send_timeout_ms, "ms")
