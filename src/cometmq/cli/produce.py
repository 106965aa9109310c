"""``cometmq produce``: standard input to a topic, one message per line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from io import BufferedReader
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from cometmq.base.errors import CometError, UsageError
from cometmq.cli.client_command import (
    Progress,
    client_config,
    connection_options,
    exit_codes,
    topic_option,
)

if TYPE_CHECKING:
    from cometmq.client.core.send.send_result import SendResult
    from cometmq.client.helpers.message_lines import Given
    from cometmq.client.sync import Producer
    from cometmq.model.messages.message import Message

READ_BYTES: Final = 256 * 1024
LINE_BYTES_MAX: Final = 32 * 1024 * 1024

BUSY_SECONDS_MAX: Final = 30.0
"""So long lines are sent again to a broker that is too busy. What it refused for that, it has not stored."""
BUSY_PAUSE_SECONDS: Final = 0.2

Line = tuple[int, bytes]
"""Line number and content."""


class NotSent(CometError):
    """A message could not be sent; those before it are stored."""


@click.command()
@topic_option
@connection_options
@click.option("--group", default="cometmq-produce", show_default=True, help="The producer's group.")
@click.option("--tags", help="Tag of every message.")
@click.option("--keys", multiple=True, metavar="KEY", help="Key of every message; may be repeated.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="Property of every message; may be repeated.",
)
@click.option("--sharding-key", help="Messages with the same key go to the same queue, in order.")
@click.option(
    "--delay-level",
    default=0,
    type=click.IntRange(0),
    help="Deliver after the delay of this level in the broker's list: 1 is 1 s, 3 is 10 s, 18 is 2 h.",
)
@click.option("--json", "is_json", is_flag=True, help="Lines are JSON objects; see above.")
@click.option("--base64", "is_base64", is_flag=True, help="Bodies are base64, for binary data.")
@click.option(
    "--batch",
    "batch_max",
    default=1,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Send up to this many lines in one request, as many as are available at once: several times faster.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after this many messages.")
@click.option("--ids", "has_ids", is_flag=True, help="Write the id of each message to stdout.")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Print nothing but errors.")
def produce(
    *,
    topic: str,
    name_servers: str | None,
    config_file: str | None,
    group: str,
    tags: str | None,
    keys: tuple[str, ...],
    properties: tuple[str, ...],
    sharding_key: str | None,
    delay_level: int,
    is_json: bool,
    is_base64: bool,
    batch_max: int,
    count: int | None,
    has_ids: bool,
    is_quiet: bool,
) -> None:
    """Send each line of standard input as a message. Empty lines are skipped.

    A message counts as sent when its broker has stored it. While a broker is too busy to store a message, it is sent
    again, for half a minute. The first message that cannot be sent ends the command: the lines before it are stored,
    that line and those after it are not.

    \b
    With --json a line is an object with the fields
      body, or body_base64   the body; one of them is required
      tags                   string
      keys                   list of strings
      properties             object of strings
      delay_level            number
      sharding_key           string
    Options apply to what a line does not set. Lines from `cometmq consume --json` can be sent unchanged.

    \b
    Exit code: 0 everything was sent; 1 a message could not be sent; 2 a wrong option or line; 130 interrupted.

    \b
    Examples:
      echo hello | cometmq produce -t Greetings
      cometmq produce -t Orders --json --batch 100 < orders.jsonl
      tail -F app.log | cometmq produce -t Logs --batch 200 --tags web
    """
    with exit_codes("cometmq produce"):
        from cometmq.client import ProducerConfig
        from cometmq.client.helpers.message_lines import Given
        from cometmq.client.sync import Producer

        config = ProducerConfig(client=client_config(name_servers, config_file))
        given = Given(
            topic=topic,
            tags=tags,
            keys=keys,
            properties=_pairs(properties),
            delay_level=delay_level,
            sharding_key=sharding_key,
        )
        if sys.stdin.isatty() and not is_quiet:
            click.echo("reading lines from the terminal; Ctrl-D ends", err=True)
        progress = Progress("sent", is_quiet=is_quiet)
        try:
            with (
                os.fdopen(sys.stdin.fileno(), "rb", closefd=False) as source,
                Producer(group, config=config) as producer,
            ):
                for chunk in chunks(source, batch_max, count):
                    _send(producer, chunk, given, is_json, is_base64, has_ids, progress)
        finally:
            progress.end()


def _send(
    producer: Producer,
    chunk: list[Line],
    given: Given,
    is_json: bool,
    is_base64: bool,
    has_ids: bool,
    progress: Progress,
) -> None:
    """Raises UsageError or NotSent with the number of the line. The lines before a bad line are sent."""
    from cometmq.client.helpers.message_lines import message_of

    messages: list[Message] = []
    for number, line in chunk:
        try:
            messages.append(message_of(line, given, is_json=is_json, is_base64=is_base64))
        except UsageError as error:
            _send_messages(producer, messages, chunk, has_ids, progress)
            raise UsageError(f"line {number}: {error}") from None
    _send_messages(producer, messages, chunk, has_ids, progress)


def _send_messages(
    producer: Producer,
    messages: list[Message],
    chunk: list[Line],
    has_ids: bool,
    progress: Progress,
) -> None:
    from cometmq.client.sync import PartlySent

    # A sharding key applies to its own message, not to its neighbours.
    is_one_by_one = len(messages) == 1 or any(message.sharding_key for message in messages)
    at = 0
    try:
        if is_one_by_one:
            for message in messages:
                [result] = sent(lambda one: [producer.send(one[0])], [message])
                _tell(result.message_id, has_ids)
                at += 1
        else:
            for result in sent(producer.send_all, messages):
                # The ids of a batch are joined by commas.
                _tell(result.message_id.replace(",", "\n"), has_ids)
            at = len(messages)
    except PartlySent as error:
        at = len(messages) - len(error.unsent)
        raise NotSent(f"line {chunk[at][0]}: {error.__cause__}") from None
    except UsageError as error:
        last = chunk[len(messages) - 1][0]
        place = f"line {chunk[at][0]}" if is_one_by_one else f"lines {chunk[at][0]} to {last}"
        raise UsageError(f"{place}: {error}") from None
    except CometError as error:
        raise NotSent(f"line {chunk[at][0]}: {error}") from None
    finally:
        progress.add(at)


def sent(
    send: Callable[[list[Message]], list[SendResult]], messages: list[Message]
) -> Iterator[SendResult]:
    """The results of messages, which are sent again while their broker is too busy, but not for ever.

    Raises:
        CometError: what ``send`` raises at last; the results of what it stored came before.
    """
    from cometmq.client.sync import PartlySent
    from cometmq.protocol.reply_errors import FlowControl, SystemBusy

    until = time.monotonic() + BUSY_SECONDS_MAX
    while True:
        try:
            yield from send(messages)
            return
        except (PartlySent, SystemBusy, FlowControl) as error:
            if isinstance(error, PartlySent):
                yield from error.results
                messages = error.unsent
            why = error.__cause__ if isinstance(error, PartlySent) else error
            if not isinstance(why, SystemBusy | FlowControl) or time.monotonic() >= until:
                raise
        time.sleep(BUSY_PAUSE_SECONDS)


def _tell(ids: str, has_ids: bool) -> None:
    if has_ids:
        click.echo(ids)


def chunks(source: BufferedReader, size: int, count: int | None) -> Iterator[list[Line]]:
    """Lines as they arrive: up to ``size`` of those available, without waiting for more."""
    left = count
    for ready in _ready_lines(source):
        lines = iter(ready)
        while chunk := list(islice(lines, size if left is None else min(size, left))):
            yield chunk
            if left is not None:
                left -= len(chunk)
                if left == 0:
                    return


def _ready_lines(source: BufferedReader) -> Iterator[list[Line]]:
    """After each read, the lines that it completed, without empty ones."""
    rest = b""
    number = 0
    while True:
        part = source.read1(READ_BYTES)
        lines = (rest + part).split(b"\n")
        # The last line continues in the next read, unless this is the end.
        rest = lines.pop() if part else b""
        if len(rest) > LINE_BYTES_MAX:
            raise UsageError(
                f"line {number + len(lines) + 1} is longer than {LINE_BYTES_MAX} bytes"
            )
        yield [(at, line) for at, line in enumerate(lines, number + 1) if line]
        number += len(lines)
        if not part:
            return


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--property takes NAME=VALUE, not {text!r}")
        pairs[name] = value
    return pairs
