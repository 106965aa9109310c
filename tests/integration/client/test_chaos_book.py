"""The judge of the chaos test: it sees what it is there to see, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.integration.client.chaos_book import (
    Delivery,
    ReadBook,
    SendBook,
    inversions,
    missing,
    repeated,
)


def deliveries(*offsets: int, start: int = 0, reader: str = "r") -> list[Delivery]:
    return [
        Delivery(start + number, ("b", 0, offset), f"k:{offset}", reader)
        for number, offset in enumerate(offsets)
    ]


def test_a_message_that_did_not_come_or_came_as_another_is_missing() -> None:
    confirmed = {("b", 0, 0): "k:0", ("b", 0, 1): "k:1", ("b", 0, 2): "other:2"}
    assert missing(confirmed, deliveries(0, 2)) == [
        "k:1 at ('b', 0, 1): delivered None",
        "other:2 at ('b', 0, 2): delivered k:2",
    ]


def test_going_back_to_a_saved_position_is_no_inversion() -> None:
    assert inversions(deliveries(0, 1, 2, 1, 2, 3, 3, 0, 4)) == []
    # Another process goes on from a position behind what the first one had read.
    later = deliveries(1, 2, 3, start=10, reader="s")
    assert inversions([*later, *deliveries(0, 1, 2)]) == []


def test_overtaking_and_skipping_are_inversions() -> None:
    assert len(inversions(deliveries(0, 2, 1))) == 2
    assert len(inversions(deliveries(0, 1, 3))) == 1
    assert len(inversions(deliveries(1, 2))) == 1


def test_repetitions_are_counted_from_a_moment_on() -> None:
    found = deliveries(0, 1, 0, 2, 1)
    assert [each.place[2] for each in repeated(found)] == [0, 1]
    assert [each.place[2] for each in repeated(found, since_ns=3)] == [1]


def test_a_key_must_rise_within_a_queue_but_may_change_its_queue() -> None:
    book = SendBook({("b", 0, 5): "k:0", ("c", 0, 1): "k:1", ("b", 0, 6): "k:2"})
    assert book.queue_orders() == []
    book.confirmed["b", 0, 4] = "k:3"
    assert book.queue_orders() == ["k:3 at ('b', 0, 4), but number 2 is at 6"]


def test_a_book_is_read_as_it_grows_and_a_torn_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "reader-0.txt"
    book = ReadBook(path)
    assert book.deliveries() == []
    path.write_text("7 b 0 0 k:0\n8 b 0")
    assert [each.place for each in book.deliveries()] == [("b", 0, 0)]
    path.write_text("7 b 0 0 k:0\n8 b 0 1 k:1\n")
    assert [each.place for each in book.deliveries()] == [("b", 0, 0), ("b", 0, 1)]
