"""How a pipeline says that it runs: a value in the key-value store of the name servers, by the pipeline's name.

Pipelines write it, the dashboard reads it. Nothing in between: no server and no topic of its own, and it works with
RocketMQ's name servers as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

NAMESPACE: Final = "COMETMQ_PIPELINES"
TEXT_CHARS_MAX: Final = 500

RUNNING, ENDED, FAILED = "running", "ended", "failed"


class PipelineReport(msgspec.Struct, kw_only=True):
    """``lag`` is None if the pipeline does not know it. Times are milliseconds since 1970."""

    name: str
    state: str
    topics: list[str]
    lag: int | None
    rows_read: int
    rows_per_second: float
    started_ms: int
    reported_ms: int
    last_error: str = ""

    def encode(self) -> str:
        cut = msgspec.structs.replace(self, last_error=self.last_error[:TEXT_CHARS_MAX])
        return msgspec.json.encode(cut).decode()


def read_reports(values: Iterable[str]) -> list[PipelineReport]:
    """Those that can be read, by name: anybody may write to the store."""
    found = []
    for text in values:
        try:
            found.append(msgspec.json.decode(text, type=PipelineReport))
        except msgspec.DecodeError:
            continue
    return sorted(found, key=lambda report: report.name)
