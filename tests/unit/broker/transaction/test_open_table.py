from __future__ import annotations

from cometmq.broker.transaction.open_table import OpenHalf, OpenTable


def half(queue_offset: int, identity: int | None = None) -> OpenHalf:
    return OpenHalf(
        queue_offset if identity is None else identity,
        queue_offset,
        0,
        0,
        -1,
        0,
        "PG",
        queue_offset,
    )


def test_a_copy_takes_the_place_of_what_it_copies() -> None:
    table = OpenTable()
    first, second = half(0), half(1)
    table.add(first)
    table.add(second)
    assert table.head() is first
    copy = half(2, 0)
    table.add(copy)
    assert (table.find(0), table.find(1), table.find(2)) == (copy, second, None)
    assert not table.is_open(first)
    assert table.head() is second
    again = half(3, 0)
    table.add(again)
    assert (table.find(0), len(table)) == (again, 2)
    assert table.all() == [second, again]


def test_what_is_closed_is_gone() -> None:
    table = OpenTable()
    table.add(half(0))
    table.add(copy := half(1, 0))
    table.close(copy)
    assert (table.find(0), table.find(1), table.head(), len(table)) == (None, None, None, 0)
    table.add(half(2))
    assert table.find(2) is not None
