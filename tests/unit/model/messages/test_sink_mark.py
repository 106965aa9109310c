from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.model.messages.sink_mark import SinkMark, check_sink_id, sink_mark_in

MARK = SinkMark("q-1.a_B", 3, 17)


@pytest.mark.parametrize("text", ["__SINK\x01{}", "A\x01b\x02__SINK\x01{}\x02C\x01d"])
def test_the_mark_is_found_wherever_it_stands(text: str) -> None:
    assert sink_mark_in(text.format(MARK).encode()) == MARK


@pytest.mark.parametrize(
    "text", ["", "A\x01b", "A__SINK\x01s/1/2", "__SINK\x01s/1", "__SINK\x01s/1/x", "__SINK\x01/1/2"]
)
def test_what_is_no_mark_is_none(text: str) -> None:
    assert sink_mark_in(text.encode()) is None


@pytest.mark.parametrize("sink", ["", "a/b", "a b", "é", "x" * 101, "a\n"])
def test_ids_that_cannot_be(sink: str) -> None:
    with pytest.raises(UsageError, match="expected a sink id"):
        check_sink_id(sink)


def test_a_good_id_passes() -> None:
    check_sink_id("0f8fad5b-d9cb-469f-a165-70867728950e")
