from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.name_server_choice import (
    NameServerChoice,
    parse_service_answer,
    service_path,
    static_name_servers,
)


def _as_they_are(addresses: list[str]) -> None:
    pass


def test_the_setting_wins_over_the_environment() -> None:
    assert static_name_servers("a:1; b:2;", "c:3") == ["a:1", "b:2"]
    assert static_name_servers("", "c:3") == ["c:3"]
    assert static_name_servers(" ", "") == []


@pytest.mark.parametrize("text", ["a", "a:0", "a:b", "a:1,b:2:"])
def test_what_is_no_address_is_refused_at_once(text: str) -> None:
    with pytest.raises(UsageError, match="expected an address like"):
        static_name_servers("", text)


def test_a_unit_has_a_list_of_its_own() -> None:
    assert service_path("nsaddr", "") == "/rocketmq/nsaddr"
    assert service_path("nsaddr", "u1") == "/rocketmq/nsaddr-u1?nofix=1"


def test_answers_of_the_service() -> None:
    assert parse_service_answer(" a:1;b:2\n") == ["a:1", "b:2"]
    for bad in ("", "\n", "<html></html>"):
        with pytest.raises(UsageError, match="expected a"):
            parse_service_answer(bad)


def test_one_is_used_until_it_fails_and_then_the_next() -> None:
    choice = NameServerChoice(["a:1", "b:2", "c:3"], _as_they_are)
    choice.failed("a:1")
    assert choice.addresses == ["b:2", "c:3", "a:1"]
    # A second call that had been under way to the same one.
    choice.failed("a:1")
    assert choice.addresses == ["b:2", "c:3", "a:1"]


def test_clients_begin_with_different_ones() -> None:
    choice = NameServerChoice(["a:1", "b:2"], list.reverse)
    assert choice.addresses == ["b:2", "a:1"]


def test_a_new_list_replaces_the_old_one_and_the_same_one_does_not() -> None:
    choice = NameServerChoice(["a:1", "b:2"], _as_they_are)
    choice.failed("a:1")
    assert not choice.replace(["a:1", "b:2", "a:1"])
    assert choice.addresses == ["b:2", "a:1"]
    assert choice.replace(["c:3", "b:2"])
    assert choice.addresses == ["c:3", "b:2"]
