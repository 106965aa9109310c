"""The layout of a record stands in one place."""

from __future__ import annotations

import re
from pathlib import Path

import cometmq
from cometmq.model.messages.record_layout import HEAD_V4, body_at, stored_at

SOURCE = Path(cometmq.__file__).parent
# Struct formats and numbers that nothing but a record has.
STATED = re.compile(r"iIIii|i16xq|i8xi|0xDAA320|xda.xa3.x20|0xCBD43194")


def test_no_other_module_states_it() -> None:
    places = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if STATED.search(path.read_text())
    }
    assert places <= {"model/messages/record_layout.py"}


def test_ipv6_hosts_move_what_is_behind_them() -> None:
    assert [stored_at(flag) for flag in (0, 16, 32, 48)] == [56, 68, 56, 68]
    assert [body_at(flag) for flag in (0, 16, 32, 48)] == [88, 100, 100, 112]
    assert HEAD_V4.size == 88
