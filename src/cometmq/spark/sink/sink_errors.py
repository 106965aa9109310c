"""What the sink tells its user beyond what brokers and the network say.

BadRow (UsageError)    a row that can never be a message
SinkFenced             a later attempt writes this partition; this one has to end
SinkStalled            a broker took nothing for longer than ``retryTimeout``
NotRepeatable          a batch that is begun anew does not hold the rows that it held, partition by partition
NotExactlyOnce         a broker that cannot keep rows from being written twice, and ``exactlyOnce`` is ``require``
"""

from __future__ import annotations

from cometmq.base.errors import CometError, UsageError


class BadRow(UsageError):
    """The text says which column is wrong, and how."""


class SinkFenced(CometError):
    """Another attempt of the same partition has taken over, as after a lost executor or with speculation."""


class SinkStalled(CometError):
    """The rows were not acknowledged in time; the same batch may be written again."""

    retryable = True


class NotRepeatable(CometError):
    """Written as it is now, rows would be stored twice. The text says what to do."""


class NotExactlyOnce(CometError):
    """The broker does not know the sink's requests: it is RocketMQ's, or older."""
