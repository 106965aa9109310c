"""``cometmq consume``: a topic to standard output, one message per line."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from cometmq.base.errors import CometError, UsageError
from cometmq.cli.client_command import (
    INTERRUPTED,
    Progress,
    client_config,
    connection_options,
    exit_codes,
    topic_option,
)

if TYPE_CHECKING:
    from cometmq.client import ClientConfig, LitePullConfig, MessageQueue, ReceivedMessage, Sql
    from cometmq.client.sync import LitePullConsumer

OWN_GROUP: Final = "cometmq-consume"
POLL_MESSAGES: Final = 256
POLL_SECONDS: Final = 0.2
ASSIGNED_SECONDS_MAX: Final = 30.0


class NoQueues(CometError):
    """Other consumers of the group own all queues of the topic."""


@click.command()
@topic_option
@connection_options
@click.option(
    "--group",
    help="Read as a consumer of this group: share its queues, continue at its position, commit what is written.",
)
@click.option(
    "--from",
    "start",
    default="first",
    show_default=True,
    metavar="first|last|TIME",
    help="Where to start. TIME is like 2026-01-31T23:59:59 (local unless it names a zone) or milliseconds "
    "since 1970. With --group it only matters where the group has no position yet.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after this many messages.")
@click.option(
    "-f", "--follow", is_flag=True, help="Wait for new messages, until Ctrl-C or --count."
)
@click.option("--tags", help="Only messages with one of these tags, such as 'paid || refunded'.")
@click.option("--sql", help='Only messages that match a condition, such as "amount > 100".')
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Write JSON objects with everything known about each message.",
)
@click.option("--base64", "is_base64", is_flag=True, help="Write bodies as base64.")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Print nothing but errors.")
def consume(
    *,
    topic: str,
    name_servers: str | None,
    config_file: str | None,
    group: str | None,
    start: str,
    count: int | None,
    follow: bool,
    tags: str | None,
    sql: str | None,
    is_json: bool,
    is_base64: bool,
    is_quiet: bool,
) -> None:
    """Write the messages of a topic to standard output, one per line.

    Without --group it reads all queues from --from on, and commits nothing. Without --follow it exits when it has
    written what was there when it started. Messages of one queue are in order, those of different queues are
    interleaved.

    A body with line breaks takes several lines; --json and --base64 keep it on one. A JSON line has the fields that
    `cometmq produce --json` reads, plus topic, broker, queue, offset, message_id, stored_ms. A body that is not UTF-8
    is in body_base64. A body that cannot be decompressed is written as it is stored; this is reported on standard
    error, and in a JSON line as body_error.

    \b
    Exit code: 0 done, also if the reader of the output went away or Ctrl-C ended --follow; 1 reading failed;
    2 a wrong option; 130 interrupted.

    \b
    Examples:
      cometmq consume -t Orders --count 10
      cometmq consume -t Orders --follow --from last --tags paid --json | jq .body
      cometmq consume -t Orders --group billing --follow >> orders.txt
    """
    with exit_codes("cometmq consume", when_interrupted=0 if follow else INTERRUPTED):
        from cometmq.client.sync import LitePullConsumer

        if tags is not None and sql is not None:
            raise UsageError("give either --tags or --sql, not both")
        since_ms = _time_ms(start)
        consumer = LitePullConsumer(
            group or OWN_GROUP,
            config=_config(
                client_config(name_servers, config_file),
                start,
                since_ms,
                has_group=group is not None,
            ),
        )
        progress = Progress("read", is_quiet=is_quiet)
        try:
            with consumer:
                ends = {queue: consumer.max_offset(queue) for queue in consumer.queues(topic)}
                wanted = _expression(tags, sql)
                if group is None:
                    _read_all_queues(consumer, list(ends), wanted, start, since_ms)
                else:
                    consumer.subscribe(topic, wanted)
                _write(consumer, progress, None if follow else ends, count, is_json, is_base64)
        except BrokenPipeError:
            # The reader has gone away. Python would try to write the rest again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            progress.end()


def _write(
    consumer: LitePullConsumer,
    progress: Progress,
    ends: dict[MessageQueue, int] | None,
    count: int | None,
    is_json: bool,
    is_base64: bool,
) -> None:
    """Write until the ends are reached, if any are given, or ``count`` messages are written."""
    from cometmq.client.helpers.message_lines import line_of

    output = sys.stdout.buffer
    deadline = time.monotonic() + ASSIGNED_SECONDS_MAX
    while True:
        messages = consumer.poll(POLL_SECONDS)
        wanted = messages if count is None else messages[: count - progress.count]
        for message in wanted:
            if message.body_error is not None:
                click.echo(
                    f"cometmq consume: body of {message.message_id} is written as it is stored: {message.body_error}",
                    err=True,
                )
            output.write(line_of(message, is_json=is_json, is_base64=is_base64) + b"\n")
        if wanted:
            output.flush()
            progress.add(len(wanted))
        if count is not None and progress.count >= count:
            if len(wanted) < len(messages):
                _leave_the_rest(consumer, wanted[-1])
            return
        if ends is None:
            continue
        if consumer.assignment():
            if _is_at(consumer, ends):
                return
        elif time.monotonic() > deadline:
            raise NoQueues(
                f"no queue came to this consumer in {ASSIGNED_SECONDS_MAX:g} s: others of the group have them "
                "all; read with --follow to take over when one leaves, or without --group"
            )


def _is_at(consumer: LitePullConsumer, ends: dict[MessageQueue, int]) -> bool:
    for queue in consumer.assignment():
        position = consumer.position(queue)
        if position is None or position < ends.get(queue, 0):
            return False
    return True


def _leave_the_rest(consumer: LitePullConsumer, last: ReceivedMessage) -> None:
    """Only what was written is done: the rest of the poll is left for the next consumer."""
    from cometmq.client import MessageQueue

    queue = MessageQueue(last.broker_name, last.queue_id, last.topic)
    consumer.seek(queue, last.queue_offset + 1)


def _read_all_queues(
    consumer: LitePullConsumer,
    queues: list[MessageQueue],
    wanted: str | Sql,
    start: str,
    since_ms: int | None,
) -> None:
    consumer.assign(queues, wanted)
    for queue in queues:
        if since_ms is not None:
            consumer.seek(queue, consumer.offset_by_time(queue, since_ms))
        elif start == "first":
            consumer.seek_to_begin(queue)
        else:
            consumer.seek_to_end(queue)


def _expression(tags: str | None, sql: str | None) -> str | Sql:
    from cometmq.client import Sql

    return Sql(sql) if sql is not None else tags or "*"


def _config(
    client: ClientConfig, start: str, since_ms: int | None, *, has_group: bool
) -> LitePullConfig:
    from cometmq.client import LitePullConfig

    where = {"first": "CONSUME_FROM_FIRST_OFFSET", "last": "CONSUME_FROM_LAST_OFFSET"}
    timestamp = ""
    if since_ms is not None:
        timestamp = datetime.fromtimestamp(since_ms / 1000).astimezone().strftime("%Y%m%d%H%M%S")
    return LitePullConfig(
        client=client,
        consume_from_where=where.get(start, "CONSUME_FROM_TIMESTAMP"),
        consume_timestamp=timestamp,
        pull_batch_size=POLL_MESSAGES,
        auto_commit=has_group,
        auto_commit_interval_ms=1000,
    )


def _time_ms(start: str) -> int | None:
    """The time that --from gives, None for first and last. Raises UsageError."""
    if start in ("first", "last"):
        return None
    if start.isdecimal():
        return int(start)
    try:
        return int(datetime.fromisoformat(start).astimezone().timestamp() * 1000)
    except ValueError:
        raise UsageError(
            "--from takes first, last, a time like 2026-01-31T23:59:59, or milliseconds since 1970, "
            f"not {start!r}"
        ) from None
