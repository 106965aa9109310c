"""The part of the demo that runs on Spark: ``demo.yaml`` over the orders of the demo.

It runs the same code as ``cometmq pipeline run FILE --once``. The result is compared with what was sent.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cometmq.base.errors import CometError
from cometmq.cli.pipeline import load_pipeline

if TYPE_CHECKING:
    from cometmq.spark.pipeline.definition import Pipeline

FILE: Final = Path(__file__).with_name("demo.yaml")
MASTER: Final = "local[2]"
WINDOW: Final = timedelta(hours=1)

Line = Callable[[str], None]


class WrongTotals(CometError):
    """The pipeline wrote something other than what follows from the messages."""


class Order(NamedTuple):
    customer: str
    amount: int
    at: datetime


class Total(NamedTuple):
    """A row of the result."""

    window_start: datetime
    customer: str
    orders: int
    amount: float


def totals_of(orders: Iterable[Order]) -> list[Total]:
    """The expected result of the pipeline, in order."""
    amounts: dict[tuple[datetime, str], list[int]] = {}
    for order in orders:
        start = order.at.replace(minute=0, second=0, microsecond=0)
        amounts.setdefault((start, order.customer), []).append(order.amount)
    return [
        Total(start, customer, len(each), sum(each))
        for (start, customer), each in sorted(amounts.items())
    ]


def run_pipeline(name_server: str, directory: str, paid: Iterable[Order], line: Line) -> None:
    """Run it and show the result, or say in one line what is missing.

    Args:
        paid: the orders that it will find.

    Raises:
        WrongTotals: the result does not match the orders.
        CometError: the pipeline failed.
    """
    from cometmq.spark.java import JavaMissing, choose_java
    from cometmq.spark.pipeline.session import SparkMissing, check_installed

    try:
        check_installed()
        java = choose_java(os.environ)
    except (SparkMissing, JavaMissing) as missing:
        line(f"left out: {missing}")
        line("everything above works without it")
        return
    table = Path(directory) / "paid-orders"
    pipeline = load_pipeline(str(FILE), (f"nameServers={name_server}", f"path={table}"), MASTER)
    for text in (pipeline.transforms["totals"].sql or "").splitlines():
        line(f"   {text}")
    line(
        f"by cometmq pipeline run --once, on Spark {MASTER} with Java {java}: some seconds, please"
    )
    started = time.perf_counter()
    for told in _run(pipeline):
        line(told)
    seconds = time.perf_counter() - started
    found, wanted = _read(table), totals_of(paid)
    if found != wanted:
        raise WrongTotals(f"the pipeline wrote {found}, but from the orders follows {wanted}")
    line(f"   {'window':15}{'customer':10}{'orders':>8}{'amount':>12}")
    for total in found:
        window = f"{total.window_start:%H:%M} - {total.window_start + WINDOW:%H:%M}"
        line(f"   {window:15}{total.customer:10}{total.orders:8,}{total.amount:12,.2f}")
    count = sum(total.orders for total in found)
    line(
        f"in Parquet files in {table.name}/ after {seconds:.0f} s: what {count} paid orders come to"
    )


def _run(pipeline: Pipeline) -> list[str]:
    from cometmq.spark.pipeline.progress import Terminal
    from cometmq.spark.pipeline.run import run

    return run(pipeline, is_once=True, terminal=Terminal(sys.stderr, is_quiet=True))


def _read(table: Path) -> list[Total]:
    """The rows of the Parquet files, in order."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    totals: list[Total] = []
    for file in table.glob("*.parquet"):
        rows = parquet.read_table(file)
        starts = rows["windowStart"].cast(arrow.timestamp("us", "UTC"))
        columns = (starts, rows["customer"], rows["orders"], rows["amount"])
        totals += map(Total, *(column.to_pylist() for column in columns))
    return sorted(totals)
