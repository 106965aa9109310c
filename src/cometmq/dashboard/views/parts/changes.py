"""What a change did, server by server."""

from __future__ import annotations

from typing import Any

from cometmq.admin.fan_out import ByServer
from cometmq.dashboard.bodies.common import Changed, Failure, Place


def changed(answers: ByServer[Any], what: str) -> Changed:
    return Changed(
        done=[Place(where=address, what=what) for address in answers.done],
        failed=[
            Failure(where=address, problem=str(error)) for address, error in answers.failed.items()
        ],
    )
