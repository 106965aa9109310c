"""The page uses all that the API offers: whatever it can tell or change was asked for by some test. Runs last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tests.browser.visitor import ASKED

from cometmq.dashboard.contract.route import Route
from cometmq.dashboard.contract.table import ROUTES

FOR_PROGRAMS: Final = {"health"}


def test_each_route_was_asked_for(request: pytest.FixtureRequest) -> None:
    ran = {item.path.name for item in request.session.items}
    if any(path.name not in ran for path in Path(__file__).parent.glob("test_*.py")):
        pytest.skip("only a part of the browser tests runs")
    never = {route.name for route in ROUTES if not _was_asked(route)}
    assert never == FOR_PROGRAMS


def test_nothing_else_was_asked_for() -> None:
    others = {
        path for _, path in ASKED if path != "/" and not path.startswith(("/api/v1/", "/web/"))
    }
    assert others <= {"/favicon.ico", "blank"}


def _was_asked(route: Route) -> bool:
    pattern = re.compile(re.sub(r"\{[^}]+\}", "[^/]+", route.full_path))
    return any(method == route.method and pattern.fullmatch(path) for method, path in ASKED)
