"""Wrapping names in a namespace loses nothing and is done once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cometmq.client.core.namespace import unwrap, wrap
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX

namespaces = st.from_regex(r"[a-zA-Z0-9_-]{1,8}", fullmatch=True)
plain = st.from_regex(r"[%|a-zA-Z0-9_-]{1,20}", fullmatch=True)
names = st.one_of(plain, plain.map(RETRY_PREFIX.__add__), plain.map(DLQ_PREFIX.__add__))


@given(namespaces, names)
def test_wrapping_twice_is_wrapping_once(namespace: str, name: str) -> None:
    wrapped = wrap(namespace, name)
    assert wrap(namespace, wrapped) == wrapped


@given(namespaces, names)
def test_what_was_wrapped_comes_back(namespace: str, name: str) -> None:
    wrapped = wrap(namespace, name)
    if wrapped != name:
        assert unwrap(namespace, wrapped) == name


@given(namespaces, names)
def test_the_kind_of_a_name_stays_visible(namespace: str, name: str) -> None:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        assert wrap(namespace, name).startswith(prefix) == name.startswith(prefix)
        assert unwrap(namespace, wrap(namespace, name)).startswith(prefix) == name.startswith(
            prefix
        )


@given(namespaces, namespaces, plain)
def test_two_namespaces_never_share_a_name(one: str, other: str, name: str) -> None:
    mine, theirs = wrap(one, name), wrap(other, name)
    if one != other and mine != name and theirs != name:
        assert mine != theirs
