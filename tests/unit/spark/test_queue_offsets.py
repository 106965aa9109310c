from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import BadOption
from cometmq.spark.queue_offsets import from_json, to_json

QUEUES = st.builds(MessageQueue, st.text(max_size=5), st.integers(0, 300), st.text(max_size=5))


def test_the_form_that_users_see() -> None:
    offsets = {MessageQueue("b", 1, "orders"): 7, MessageQueue("b", 0, "orders"): 5}
    assert json.dumps(to_json(offsets)) == '{"orders": {"b": {"0": 5, "1": 7}}}'


@given(st.dictionaries(QUEUES, st.integers(0, 2**63 - 1), max_size=10), st.randoms())
def test_equal_offsets_make_equal_texts(
    offsets: dict[MessageQueue, int], order: random.Random
) -> None:
    text = json.dumps(to_json(offsets))
    items = list(offsets.items())
    order.shuffle(items)
    assert json.dumps(to_json(dict(items))) == text
    assert from_json(json.loads(text)) == offsets
    assert json.dumps(to_json(from_json(json.loads(text)))) == text


@pytest.mark.parametrize("value", [5, {"t": 1}, {"t": {"b": {"x": 1}}}, {"t": {"b": {"0": -1}}}])
def test_a_foreign_checkpoint_is_told(value: object) -> None:
    with pytest.raises(BadOption, match="another source"):
        from_json(value)
