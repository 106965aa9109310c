"""Which columns a reader gets."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from cometmq.base.errors import UsageError
from cometmq.spark.schema import COLUMNS, LOG_COLUMNS, chosen_columns


def test_columns_keep_their_order_whatever_the_order_and_case_of_the_wish() -> None:
    assert chosen_columns("TAGS, body ,topic", True) == ("topic", "tags", "body")
    assert chosen_columns(None, True) == COLUMNS
    assert chosen_columns("  ", False) == tuple(name for name in COLUMNS if name != "body")
    assert chosen_columns("storedSize,topic", True, LOG_COLUMNS) == ("topic", "storedSize")


@pytest.mark.parametrize("columns", ["colour", "topic,colour", "storedSize"])
def test_what_is_no_column_is_named(columns: str) -> None:
    with pytest.raises(UsageError, match="expected some of topic, brokerName"):
        chosen_columns(columns, True)


def test_something_must_be_left() -> None:
    with pytest.raises(UsageError, match="includeBody"):
        chosen_columns("body", False)
