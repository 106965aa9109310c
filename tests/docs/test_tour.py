"""The tour of the code names the files that do the work, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.tour import trace

PAGE = Path(__file__).parents[2] / "docs" / "life-of-a-message.md"
_FILE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")


@pytest.fixture(scope="module")
def entered() -> dict[str, set[str]]:
    return trace()


def _steps(text: str) -> str:
    """The numbered items, each up to the next blank line or item."""
    items = re.findall(r"^\d+\. .*(?:\n {3,}.*)*", text, re.MULTILINE)
    assert len(items) > 20
    return "\n".join(items)


@pytest.mark.parametrize("what", ["send", "pull", "consume"])
def test_every_file_that_is_entered_is_on_the_page(entered: dict[str, set[str]], what: str) -> None:
    assert len(entered[what]) > 50
    named = set(_FILE.findall(PAGE.read_text()))
    assert sorted(entered[what] - named) == []


def test_every_file_of_a_step_is_entered(entered: dict[str, set[str]]) -> None:
    """With twins and without: what only twins need is in a section of its own."""
    named = set(_FILE.findall(_steps(PAGE.read_text())))
    assert sorted(named - set().union(*entered.values())) == []
