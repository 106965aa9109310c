"""The client library: values and settings here, the clients in ``cometmq.client.aio`` and ``cometmq.client.sync``."""

from cometmq.base.errors import (
    CometError,
    ConfigError,
    RemotingError,
    TooManyInFlight,
    UsageError,
)
from cometmq.client.client_config import ClientConfig, Credentials
from cometmq.client.client_file import load_client_config, load_config
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.core.send.send_result import SendResult, SendStatus
from cometmq.client.errors import (
    AddressServiceFailed,
    BrokerNotKnown,
    ClientClosed,
    ClientError,
    GroupInUse,
    MessageNotFound,
    NoNameServer,
    NoRoute,
    ReplyImpossible,
    RequestTimedOut,
    UnreadableBody,
    client_code,
)
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.client.trace_config import TraceConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import FilterFunction, Sql
from cometmq.protocol.reply_errors import BrokerReplyError
from cometmq.remoting.tls import TlsConfig

__all__ = [
    "AddressServiceFailed",
    "BrokerNotKnown",
    "BrokerReplyError",
    "ClientClosed",
    "ClientConfig",
    "ClientError",
    "CometError",
    "ConfigError",
    "Credentials",
    "FilterFunction",
    "GroupInUse",
    "LitePullConfig",
    "Message",
    "MessageNotFound",
    "MessageQueue",
    "NoNameServer",
    "NoRoute",
    "Outcome",
    "ProducerConfig",
    "PullConsumerConfig",
    "PushConsumerConfig",
    "ReceivedMessage",
    "RemotingError",
    "ReplyImpossible",
    "RequestTimedOut",
    "SendResult",
    "SendStatus",
    "Sql",
    "TlsConfig",
    "TooManyInFlight",
    "TraceConfig",
    "UnreadableBody",
    "UsageError",
    "client_code",
    "load_client_config",
    "load_config",
]
