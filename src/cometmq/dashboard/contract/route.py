"""A row of the table of routes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Literal

from cometmq.dashboard.bodies.common import SiteQuery

PREFIX: Final = "/api/v1"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Role(IntEnum):
    """Each may do what the ones before it may."""

    ANYBODY = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return "" if self is Role.ANYBODY else self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """
    Args:
        name: of the handler, and the operation's id.
        path: below ``PREFIX``; parts in braces are names, percent-encoded.
        role: who may ask, at least.
        query, body: what is taken; None: nothing.
        answer: what is given as JSON, or the media type of another answer.
        confirms: the body repeats the name of what is destroyed.
    """

    name: str
    method: Method
    path: str
    summary: str
    answer: Any
    role: Role = Role.VIEWER
    query: type = SiteQuery
    body: type | None = None
    confirms: bool = False

    @property
    def full_path(self) -> str:
        return PREFIX + self.path

    @property
    def is_change(self) -> bool:
        return self.method != "GET"


def get(
    path: str,
    name: str,
    summary: str,
    answer: Any,
    *,
    role: Role = Role.VIEWER,
    query: type = SiteQuery,
) -> Route:
    """A route that only tells."""
    return Route(
        name=name, method="GET", path=path, summary=summary, answer=answer, role=role, query=query
    )


def change(
    method: Method,
    path: str,
    name: str,
    summary: str,
    answer: Any,
    *,
    role: Role = Role.OPERATOR,
    body: type | None = None,
    confirms: bool = False,
) -> Route:
    """A route that changes something, or may."""
    return Route(
        name=name,
        method=method,
        path=path,
        summary=summary,
        answer=answer,
        role=role,
        body=body,
        confirms=confirms,
    )
