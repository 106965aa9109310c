"""Which servers an answer lacks, and since when."""

from __future__ import annotations

from collections.abc import Mapping

from cometmq.base.errors import CometError
from cometmq.dashboard.bodies.common import Gap
from cometmq.dashboard.watch.snapshot import Snapshot


def gaps_of(failed: Mapping[str, CometError], snapshot: Snapshot) -> list[Gap]:
    """Of an answer that was asked for just now: its own failures, and what the rounds know of silent servers."""
    gaps = {gap.server: gap for gap in snapshot.gaps}
    names = {one.place.address: one for one in snapshot.brokers}
    for address, error in failed.items():
        state = names.get(address)
        server = f"{state.place.broker_name}:{state.place.broker_id}" if state else address
        since_ms = state.silent_since_ms if state else None
        gaps[server] = Gap(
            server=server, problem=str(error)[:300], since_ms=since_ms or snapshot.at_ms
        )
    return list(gaps.values())
