"""From a request to a stored decision: again when another controller was faster, refused when the store is unusable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.controller.group_of import group_of
from tests.unit.controller.memory_store import MemoryStore

from cometmq.controller.decision_store import ATTEMPTS_MAX, read, settle
from cometmq.controller.group import Decision, Group
from cometmq.protocol.refusal import Refused


def one_epoch_more(group: Group | None) -> Decision[int]:
    assert group is not None
    epoch = group.sync_state_set_epoch + 1
    return Decision(
        group=replace(group, sync_state_set_epoch=epoch), answer=epoch, line=f"epoch={epoch}"
    )


async def test_a_decision_is_made_again_on_what_others_have_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    store = MemoryStore()
    store.put(group_of(1))
    store.first = [replace(group_of(1), sync_state_set_epoch=epoch) for epoch in (5, 7)]
    assert (await settle(store, "bk", one_epoch_more)).answer == 8
    assert store.held["bk"].group.sync_state_set_epoch == 8
    assert [record.getMessage() for record in caplog.records] == ["epoch=8"]


async def test_nothing_is_written_if_nothing_changes() -> None:
    store = MemoryStore()
    store.put(group_of(1))
    decision = await settle(store, "bk", lambda group: Decision(group=group, answer="as it is"))
    assert (decision.answer, store.held["bk"].version) == ("as it is", 1)


async def test_it_gives_up_when_others_are_always_faster() -> None:
    store = MemoryStore()
    store.put(group_of(1))
    store.first = [group_of(1)] * (ATTEMPTS_MAX + 1)
    with pytest.raises(Refused, match="2: other controllers decided on bk"):
        await settle(store, "bk", one_epoch_more)
    assert store.held["bk"].group == group_of(1)


async def test_a_store_that_fails_is_a_refusal() -> None:
    store = MemoryStore()
    store.put(group_of(1))
    store.is_broken = True
    with pytest.raises(Refused, match="1: the controller cannot store decisions: no quorum"):
        await settle(store, "bk", one_epoch_more)
    with pytest.raises(Refused, match="no quorum"):
        await read(store, "bk")
