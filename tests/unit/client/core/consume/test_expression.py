"""Subscriptions as users write them."""

from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.consume.expression import subscription_to
from cometmq.model.subscription import FilterFunction, Sql


def test_a_text_means_tags() -> None:
    wish = subscription_to("T", "a || b", version=5)
    assert (wish.topic, wish.sub_string, wish.expression_type) == ("T", "a || b", "TAG")
    assert (wish.tags_set, wish.sub_version) == (["a", "b"], 5)
    assert subscription_to("T", "*").tags_set == []


def test_a_condition_goes_as_sql() -> None:
    wish = subscription_to("T", Sql("a > 5"))
    assert (wish.sub_string, wish.expression_type, wish.tags_set) == ("a > 5", "SQL92", [])


def test_a_function_goes_by_its_name() -> None:
    wish = subscription_to("T", FilterFunction("vip_orders"))
    assert (wish.sub_string, wish.expression_type, wish.tags_set) == ("vip_orders", "PYTHON", [])


@pytest.mark.parametrize("name", ["", "../vip", "vip.py", "1vip", "v" * 128])
def test_a_function_is_a_word_and_no_path(name: str) -> None:
    with pytest.raises(UsageError, match="name of a filter function"):
        subscription_to("T", FilterFunction(name))


def test_what_no_broker_could_use_is_refused_here() -> None:
    with pytest.raises(UsageError):
        subscription_to("T", Sql("a >"))
    with pytest.raises(UsageError, match="illegal characters"):
        subscription_to("no topic", "*")
    with pytest.raises(UsageError, match="holds no tag"):
        subscription_to("T", "||")
