"""What the other tests here stand on: a session whose Python workers run."""

from __future__ import annotations

from typing import Any


def test_python_workers_run(spark: Any) -> None:
    assert spark.sparkContext.parallelize([1, 2, 3], 2).map(lambda n: n * n).sum() == 14
