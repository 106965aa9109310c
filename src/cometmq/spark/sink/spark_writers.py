"""The sink ``rocketmq``: ``df.write`` and ``df.writeStream`` into topics.

Rows are sent by the tasks, and a task ends when all of its rows are acknowledged. What is written is visible at once,
also of a job that fails later; when it is run again, rows that are there already are left out. For that a batch has a
name that stays the same when it is repeated:

- of a stream, the id of the query (which its checkpoint keeps) or the option ``sinkId``, and the number of the batch;
- of a batch job, a name of its own, so that repeated tasks write nothing twice. With the options ``sinkId`` and
  ``batchId`` a second run of the whole job does not, either. Inside ``foreachBatch``, ``batchId`` is the number of the
  stream's batch unless it is given.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cometmq.base.errors import CometError
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.sink import CloseSinkHeader
from cometmq.spark.client import open_client
from cometmq.spark.errors import BadOption
from cometmq.spark.sink.sink_options import SinkOptions, read_sink_options
from cometmq.spark.sink.sink_rows import RowReader
from cometmq.spark.sink.sink_writer import SinkWriter

logger = logging.getLogger("cometmq.spark")

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass
class SinkWritten(WriterCommitMessage):
    """What a task has done."""

    rows: int
    left_out: int
    addresses: list[str]


def batch_writer(
    schema: StructType, options: Mapping[str, str], overwrite: bool
) -> DataSourceArrowWriter:
    """The writer of ``df.write``. Raises BadOption, BadRow."""
    if overwrite:
        raise BadOption(
            "mode overwrite: messages of a topic cannot be replaced; use mode append, or another topic"
        )
    return RocketMQBatchWriter(_checked(schema, options))


def stream_writer(
    schema: StructType, options: Mapping[str, str], overwrite: bool
) -> DataSourceStreamArrowWriter:
    """The writer of ``df.writeStream``. Raises BadOption, BadRow."""
    if overwrite:
        raise BadOption(
            "output mode complete: messages of a topic cannot be replaced; use mode append or update"
        )
    read = _checked(schema, options)
    if read.batch_id is not None:
        raise BadOption("option batchId: a stream numbers its batches itself; leave it out")
    return RocketMQStreamWriter(read)


class RocketMQBatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Made once for all tasks, which get copies.
        self._run = uuid.uuid4().hex
        self._own_id = "" if options.sink_id else f"job-{self._run}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options = self._options
        context = _context()
        batch_id = options.batch_id
        if batch_id is None:
            of_stream = context.getLocalProperty(_BATCH_ID) if options.sink_id else None
            batch_id = int(of_stream) if of_stream else 0
        sink_id = options.sink_id or self._own_id
        mark = SinkMark(sink_id, context.partitionId(), batch_id)
        return _write(options, mark, self._run, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._close(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._close(messages)

    def _close(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """No other job will write under the name of this one: the brokers may forget it."""
        if not self._own_id:
            return
        header = CloseSinkHeader(sink=self._own_id)
        addresses = {
            address
            for message in messages
            if isinstance(message, SinkWritten)
            for address in message.addresses
        }
        connection = self._options.connection
        with open_client(connection) as client:
            for address in addresses:
                try:
                    link = client.link(address, connection.call_seconds)
                    link.call(Command(RequestCode.CLOSE_SINK, encode_fields(header)))
                except CometError as error:
                    # The broker forgets it by itself when others come.
                    logger.info("sink not closed address=%s reason=%s", address, error)


class RocketMQStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Another one whenever a batch is begun, for the first time or again.
        self._run = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = _context()
        sink_id = self._options.sink_id or context.getLocalProperty(_QUERY_ID)
        batch_id = context.getLocalProperty(_BATCH_ID)
        if not sink_id or batch_id is None:
            raise BadOption(
                f"a stream's task must know its query and batch ({_QUERY_ID}, {_BATCH_ID}); this one does not: "
                "write inside foreachBatch with the options sinkId and batchId"
            )
        mark = SinkMark(sink_id, context.partitionId(), int(batch_id))
        return _write(self._options, mark, self._run, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Every row is acknowledged already."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """What was written stays; the batch is repeated without it."""


def _write(
    options: SinkOptions, mark: SinkMark, run: str, batches: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    writer = SinkWriter(options, mark, run)
    try:
        writer.write(batches)
        return SinkWritten(writer.written, writer.left_out, writer.addresses)
    finally:
        writer.close()


def _checked(schema: StructType, options: Mapping[str, str]) -> SinkOptions:
    """The options, once it is clear that rows of this schema can be written with them."""
    read = read_sink_options(options)
    RowReader(to_arrow_schema(schema, timezone="UTC"), read)
    return read


def _context() -> Any:
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context
