"""What is left of Spark's errors, which run over many lines, when they are told to a user."""

from __future__ import annotations

from cometmq.spark.pipeline.transforms import spark_text

RAISED_IN_PYTHON = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] \
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "worker.py", line 193, in handler
    latest_offset_func(reader, outfile)
  File "progress.py", line 7, in look
    raise DataLost(losses)
cometmq.spark.errors.DataLost: messages that were to be read are no longer there:
  topic=Orders broker=a queue=0: wanted offsets 0 to 5, available are 3 to 5 (ends not included)
They expired, or their topic was deleted.
 SQLSTATE: 38000
=== Streaming Query ===
Identifier: archive-table

\tat org.apache.spark.sql.Whatever
"""


def test_python_code_that_raised_says_it_in_its_own_words() -> None:
    assert spark_text(RuntimeError(RAISED_IN_PYTHON)) == (
        "messages that were to be read are no longer there:\n"
        "  topic=Orders broker=a queue=0: wanted offsets 0 to 5, available are 3 to 5 (ends not included)\n"
        "They expired, or their topic was deleted."
    )


def test_of_spark_itself_the_first_line() -> None:
    text = "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 3 pos 1;\n'Project"
    assert (
        spark_text(RuntimeError(text)) == "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found."
    )
    assert spark_text(RuntimeError("[USER_RAISED_EXCEPTION] stop here")) == "stop here"
    assert spark_text(RuntimeError("")) == "RuntimeError"
