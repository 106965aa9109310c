"""The client that drivers and tasks talk to a cluster with, as the options say.

Tasks run in processes of their own and do one thing at a time: the client works in their thread, while they wait.
"""

from __future__ import annotations

import os
import time
from typing import Final

from cometmq.client.client_config import ClientConfig
from cometmq.client.core.client_id import unique_instance_name
from cometmq.client.sync.bulk_client import BulkClient
from cometmq.remoting.remoting_config import RemotingClientConfig
from cometmq.spark.options import ConnectionOptions

CONNECT_MILLIS_MAX: Final = 5000


def open_client(options: ConnectionOptions) -> BulkClient:
    """A client; ``close`` it."""
    return BulkClient(
        ClientConfig(
            name_servers=";".join(options.name_servers),
            namespace=options.namespace,
            instance_name="Spark#" + unique_instance_name(os.getpid(), time.time_ns()),
            call_millis=max(int(options.call_seconds * 1000), 1),
            credentials=options.credentials,
            tls=options.tls,
            remoting=RemotingClientConfig(connect_millis_max=CONNECT_MILLIS_MAX),
        )
    )
