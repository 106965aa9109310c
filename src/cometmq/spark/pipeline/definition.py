"""A pipeline as its file says it: plain values, checked, nothing started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SOURCE_FORMATS: Final = (
    "rocketmq",
    "rocketmq-log",
    "parquet",
    "delta",
    "iceberg",
    "json",
    "csv",
    "text",
    "orc",
    "rate",
)
SINK_FORMATS: Final = (
    "rocketmq",
    "parquet",
    "delta",
    "iceberg",
    "console",
    "json",
    "csv",
    "orc",
)
BODY_FORMATS: Final = ("json", "json-lines", "avro", "protobuf", "text", "raw")
OUTPUT_MODES: Final = ("append", "update", "complete")
SAVE_MODES: Final = ("append", "overwrite", "error", "ignore")

_SECRET_WORDS: Final = ("secret", "password", "token", "credential", "accesskey", "access-key")
HIDDEN: Final = "(hidden)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Where rows go whose body cannot be decoded. ``topic`` is None for: stop the query at the first one."""

    topic: str | None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """How the column ``body`` becomes columns."""

    line: int
    format: str
    schema: str | None = None
    file: str | None = None
    message: str | None = None
    as_column: str | None = None
    dead_letters: DeadLetters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How late rows of a column may be."""

    line: int
    column: str
    delay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    line: int
    name: str
    format: str
    is_stream: bool
    options: Mapping[str, str] = field(repr=False)
    schema: str | None = None
    body: Body | None = None
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """Either ``sql`` or ``function``. ``sql_line`` is where the text of the SQL begins in the file."""

    line: int
    name: str
    sql: str | None = None
    sql_line: int = 0
    function: str | None = None
    inputs: tuple[str, ...] = ()
    arguments: Mapping[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    line: int
    name: str
    view: str
    format: str
    mode: str
    options: Mapping[str, str] = field(repr=False)
    partition_by: tuple[str, ...] = ()
    is_body_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """How often a stream runs: every ``interval``, or once over what is there when ``interval`` is None."""

    interval: str | None

    def __str__(self) -> str:
        if self.interval is None:
            return "once, over everything that is there"
        return "as soon as possible" if self.interval == "0 seconds" else f"every {self.interval}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    file: str
    name: str
    description: str
    master: str
    settings: Mapping[str, str] = field(repr=False)
    python_files: tuple[str, ...]
    checkpoint: str | None
    trigger: Trigger
    sources: Mapping[str, Source]
    transforms: Mapping[str, Transform]
    sinks: Mapping[str, Sink]

    @property
    def is_stream(self) -> bool:
        return any(source.is_stream for source in self.sources.values())


def shown(options: Mapping[str, str]) -> dict[str, str]:
    """Options fit for a terminal: values that look like secrets are hidden."""
    return {
        key: HIDDEN if any(word in key.lower() for word in _SECRET_WORDS) else value
        for key, value in options.items()
    }
