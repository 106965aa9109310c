"""Sinks that write every row once: 29002 to 29004, which are our own.

A sink writes batches, each in partitions; what one partition sends to one broker is a lane. Whoever writes a lane opens
it first, under a name of its own (``writer``) that its sends then carry. From then on nobody else's sends are taken,
and the reply tells where in the log lies what earlier writers of the same batch have stored.
"""

from __future__ import annotations

from cometmq.protocol.fields import Header, Int32, Int64, wire


class OpenSinkHeader(Header):
    """Request 29002. A writer is named ``attempt.number``; a new connection takes a new number, so that what may still
    come through the old one is refused. ``is_again``: the attempt had the lane, and must not take it from a later one.

    ``run`` is the same for all partitions of a batch until the whole batch is begun anew: then nobody knows whether a
    partition still holds the rows that it held. ``is_checked``: it does, the writer has looked.
    """

    sink: str
    partition: Int32
    batch: Int64
    writer: str
    is_again: bool = wire("again", default=False)
    run: str = ""
    is_checked: bool = wire("checked", default=False)


class OpenSinkReply(Header):
    """What the batch has stored so far lies between two offsets of the log, which are equal when it is nothing.

    ``is_checked``: nothing of it comes from another run, or it was checked in this one. ``unchecked`` names some of the
    other partitions of the batch of which that cannot be said, divided by commas; their rows lie behind
    ``batch_offset``. ``is_other_run``: one of them was written by a run that is known to be another.
    """

    first_offset: Int64
    end_offset: Int64
    is_checked: bool = wire("checked", default=True)
    unchecked: str = ""
    is_other_run: bool = wire("otherRun", default=False)
    batch_offset: Int64 = 0


class SinkStoredHeader(Header):
    """Request 29003: which messages of a batch lie between two offsets of the log; a record begins at the first.

    Those of the partition, or with ``of_others`` those of all but this one.
    """

    sink: str
    partition: Int32
    batch: Int64
    first_offset: Int64
    end_offset: Int64
    of_others: bool = wire("others", default=False)


class SinkStoredReply(Header):
    """The body is 24 bytes a message: its physical offset, big end first, and the 16 bytes of its unique key.

    ``next_offset`` is how far the log was read; below the end that was asked for there is more.
    """

    next_offset: Int64
    count: Int32


class CloseSinkHeader(Header):
    """Request 29004: the sink will never write again; what is known of it is forgotten."""

    sink: str
