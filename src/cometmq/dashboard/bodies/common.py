"""Parts of many bodies: names, lists in pages, what is missing, what a change did."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

Millis = Annotated[int, Meta(ge=0, le=253_402_300_799_999, description="ms since 1970, UTC")]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=1024)]
QueueId = Annotated[int, Meta(ge=0, le=65_535)]


class Given(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a caller sends: in the body, or as parameters of the address."""


class Told(msgspec.Struct, kw_only=True):
    """What the dashboard answers."""


class Gap(Told, kw_only=True):
    """A server whose part is missing in an answer, and since when it does not answer."""

    server: str
    problem: str
    since_ms: int


class Seen(Told, kw_only=True):
    """``as_of_ms`` is when the servers were asked; ``incomplete`` names those that did not answer."""

    as_of_ms: int
    incomplete: list[Gap] = msgspec.field(default_factory=list)


class Page(Seen, Generic[T], kw_only=True):
    """Some rows of ``total``."""

    rows: list[T]
    total: int
    page: int
    size: int


class PageQuery(Given, kw_only=True):
    """Which part of a list is wanted. ``sort`` is a field of its rows; with ``-`` before it, the largest first."""

    page: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    size: Annotated[int, Meta(ge=1, le=500)] = 50
    sort: Annotated[str, Meta(max_length=40, pattern=r"^-?[a-z_]*$")] = ""
    q: Annotated[str, Meta(max_length=255, description="part of the name")] = ""
    site: Annotated[str, Meta(max_length=80, description="which set of name servers")] = ""


class SiteQuery(Given, kw_only=True):
    """Which set of name servers is meant; the first one if none is named."""

    site: Annotated[str, Meta(max_length=80)] = ""


class Place(Told, kw_only=True):
    """``where`` is a server, a queue or a message; ``what`` says what was done there."""

    where: str
    what: str = ""


class Failure(Told, kw_only=True):
    where: str
    problem: str


class Remark(Told, kw_only=True):
    """A sentence: a code with its values, for the page's own words, and the same in English."""

    code: str
    params: dict[str, Any]
    text: str


class Changed(Told, kw_only=True):
    """What a change did, and where it failed. With ``failed`` the answer is still 200: part of it was done."""

    done: list[Place]
    failed: list[Failure] = msgspec.field(default_factory=list)
    notes: list[Remark] = msgspec.field(default_factory=list)


class ErrorText(Told, kw_only=True):
    """``code`` is for programs, ``message`` says what is wrong, ``hint`` what to do."""

    code: str
    message: str
    hint: str = ""
    field: str | None = None


class ErrorBody(Told, kw_only=True):
    error: ErrorText


class Note(Told, kw_only=True):
    """Something found out: a code with its values, for the page's own words, and the same in English."""

    severity: str
    """error, warning or info"""
    code: str
    params: dict[str, Any]
    text: str
    fix: str
    """What to do about it, in English."""
    page: str
    """Where in the page it is mended, such as ``#/groups/billing``."""
    since_ms: int
