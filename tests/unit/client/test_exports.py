"""What users import: all of it is there, and the two doors do not offer the same name for different things."""

from __future__ import annotations

import cometmq.client
import cometmq.client.aio


def test_every_exported_name_is_there_and_sorted() -> None:
    for door in (cometmq.client, cometmq.client.aio):
        assert door.__all__ == sorted(door.__all__)
        for name in door.__all__:
            assert hasattr(door, name), name


def test_a_name_is_exported_once() -> None:
    assert set(cometmq.client.__all__).isdisjoint(cometmq.client.aio.__all__)
