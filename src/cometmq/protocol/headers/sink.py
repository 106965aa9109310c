"""Sinks that write every row once: 29002 to 29004, which are our extensions.

A sink writes batches, each in partitions; what one partition sends to one broker is a lane. A writer opens its lane
first, under a unique name (``writer``) that its sends then carry. From then on, sends of other writers are refused.
The reply tells where in the log the rows of earlier writers of the same batch are stored.
"""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class OpenSinkHeader(Header):
    """Request 29002. A writer is named ``attempt.number``; a new connection uses a new number, so that what may still
    arrive on the old one is refused. ``is_again``: the attempt had the lane, and must not take it from a later one.

    ``run`` is the same for all partitions of a batch until the whole batch is restarted: then it is unknown whether a
    partition still holds the same rows. ``is_checked``: it does, the writer has checked.
    """

    sink: str
    partition: Int32
    batch: Int64
    writer: str
    is_again: bool = wire("again", default=False)
    run: str = ""
    is_checked: bool = wire("checked", default=False)


class OpenSinkReply(Header):
    """What the batch has stored so far is between two offsets of the log, which are equal if there is nothing.

    ``is_checked``: nothing of it comes from another run, or it was checked in this one. ``unchecked`` names some of
    the other partitions of the batch for which this is not the case, separated by commas; their rows are after
    ``batch_offset``. ``is_other_run``: one of them is known to have been written by another run.
    """

    first_offset: Int64
    end_offset: Int64
    is_checked: bool = wire("checked", default=True)
    unchecked: str = ""
    is_other_run: bool = wire("otherRun", default=False)
    batch_offset: Int64 = 0


class SinkStoredHeader(Header):
    """Request 29003: which messages of a batch are between two offsets of the log; a record begins at the first.

    Those of the partition, or with ``of_others`` those of all other partitions.
    """

    sink: str
    partition: Int32
    batch: Int64
    first_offset: Int64
    end_offset: Int64
    of_others: bool = wire("others", default=False)


class SinkStoredReply(Header):
    """The body has 24 bytes per message: its physical offset, big-endian, and the 16 bytes of its unique key.

    ``next_offset`` is how far the log was read; if it is below the requested end, there is more.
    """

    next_offset: Int64
    count: Int32


class CloseSinkHeader(Header):
    """Request 29004: the sink will never write again; the broker forgets it."""

    sink: str
