"""Writing a batch that an earlier run has begun, before a crash: no row twice, even if it is cut differently now.

A row that is stored is left out by the partition that has stored it. So whatever a partition has stored must be among
its rows when the batch is begun anew; then each stored row is left out once. Spark does not say how many partitions a
batch has, nor what they hold, so that is what is looked at:

    open    the lane, and read what it holds
    keep    all rows of the partition in a file
    check   that what the lane holds is among them, or refuse; tell the broker that it is
    wait    until the other lanes of the batch were checked, too
    write   the rows that are missing

A partition that holds equal rows, or that runs when all cores are taken, need not wait for ever: rows that no lane
holds that was not checked yet cannot come twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from cometmq.spark.retry import PAUSE_SECONDS
from cometmq.spark.sink.sink_errors import NotRepeatable
from cometmq.spark.sink.sink_lane import BrokerLane

GRACE_SECONDS: Final = 10.0
"""How long rows that cannot come twice wait for a refusal by others, so that a run that is refused has written nothing:
then the batch can still be written as it was cut before."""
POLL_SECONDS_MAX: Final = 0.5
WAY_OUT: Final = (
    "Run it with the same settings as before (minPartitions, maxRecordsPerPartition, cores, files, the query itself), "
    "or once with exactlyOnce=off, which writes all rows of the batch and so may write some twice"
)


class Spool:
    """Record batches in a temporary file: added once, read as often as need be. ``close`` it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)

    def end(self) -> None:
        """No batch is added any more."""
        if self._writer is not None:
            self._writer.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._writer is None:
            return
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            yield from reader

    def close(self) -> None:
        self._file.close()


def wait_for_others(
    lanes: Sequence[BrokerLane],
    missing: bytearray,
    *,
    are_comparable: bool,
    seconds: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Return when rows may be written that are missing in the lanes of this partition.

    Args:
        lanes: each was checked.
        missing: the keys of the rows, one behind the other.
        are_comparable: equal rows of two partitions have the same key.

    Raises:
        NotRepeatable: lanes of other partitions hold such rows, and were not checked within so many seconds.
    """
    started = monotonic()
    grace = GRACE_SECONDS if any(lane.is_other_run for lane in lanes) else 0.0
    is_held: bool | None = None
    pause = PAUSE_SECONDS
    while waiting := [lane for lane in lanes if lane.unchecked]:
        waited = monotonic() - started
        if waited >= min(grace, seconds) and is_held is None:
            is_held = not are_comparable or _is_any_held(waiting, missing)
            if not is_held:
                return
        if waited >= seconds:
            raise NotRepeatable(
                f"{waiting[0]}: an earlier run of the batch has stored rows that look like some of this partition's, "
                f"and its partitions {waiting[0].unchecked} have not been written again for {seconds:g} s "
                f"(retryTimeout): the batch is cut differently now. Nothing of this partition was written. {WAY_OUT}"
            )
        sleep(pause)
        pause = min(pause * 2, POLL_SECONDS_MAX)
        for lane in waiting:
            lane.confirm()


def _is_any_held(lanes: Sequence[BrokerLane], missing: bytearray) -> bool:
    # Half of a key: rows that are taken for equal in error only wait.
    wanted = np.unique(np.frombuffer(missing, ">u8")[::2])
    return any(lane.is_any_held_by_others(wanted) for lane in lanes)
