"""A connection to one broker, for tests that send it requests of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cometmq.client.aio.bulk.raw_pull import RawPulled, bulk_pull_request, read_bulk_pull
from cometmq.client.client_config import ClientConfig
from cometmq.client.sync.bulk_client import BrokerLink, BulkClient
from cometmq.protocol.headers.pull import BulkPullHeader


@contextmanager
def broker_link(address: str, silence_seconds: float = 10.0) -> Iterator[BrokerLink]:
    # Nobody is asked for a route, so that any address will do.
    with BulkClient(ClientConfig(name_servers=address)) as client:
        yield client.link(address, silence_seconds)


def bulk_pull(link: BrokerLink, header: BulkPullHeader) -> RawPulled:
    """Ask and wait. Raises BrokerReplyError, RemotingError."""
    return read_bulk_pull(link.call(bulk_pull_request(header)), link.address)
