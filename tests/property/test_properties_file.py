"""A properties file gives back what was written into it, whatever the characters."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cometmq.base.properties_file import edit_properties, parse_properties, render_properties

ANYTHING = st.text()
"""All of Unicode: Hypothesis leaves out nothing but halves of surrogate pairs, which are no characters."""

TRICKY = st.text(alphabet="ab=:#! \\\t\f\v\r\n\x1c\x1d\x1e\x85\u2028\u2029u0041é😀", max_size=40)
TEXTS = st.one_of(ANYTHING, TRICKY)
SETTINGS = st.dictionaries(TEXTS, TEXTS, max_size=5)


@given(SETTINGS)
@example({"a": "false\u2028bindAddress=0.0.0.0", "b": "\x85c=1", "d": "\x0be=2", "😀": "\\u0041"})
def test_what_is_rendered_is_parsed_again(values: dict[str, str]) -> None:
    text = render_properties(values)
    assert parse_properties(text) == values
    assert text.isascii()
    assert len(text.splitlines()) == len(values)


@given(st.lists(TRICKY, max_size=6).map("\n".join), SETTINGS)
@example("a=1\\", {"b": "2"})
@example("a=1\\\n", {"b": "2"})
@example("a=1\\\n \\\n", {"b": "2"})
@example("# b=1\\\nb=1\r\rb=2", {"b": "3"})
def test_an_edit_changes_what_is_named_and_nothing_else(text: str, values: dict[str, str]) -> None:
    before = _parsed(text)
    if before is not None:
        assert parse_properties(edit_properties(text, values)) == {**before, **values}


@given(TRICKY)
def test_an_edit_without_changes_leaves_every_character(text: str) -> None:
    if _parsed(text) is not None:
        assert edit_properties(text, {}) == text


def _parsed(text: str) -> dict[str, str] | None:
    """What a text says, None for one with a broken ``\\u`` escape."""
    try:
        return parse_properties(text)
    except ValueError:
        return None
