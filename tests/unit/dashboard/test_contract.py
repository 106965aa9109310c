"""The table of routes, its description, and the words of what is found wrong."""

from __future__ import annotations

import json
import re
import string

from cometmq.dashboard.contract.openapi import openapi
from cometmq.dashboard.contract.route import Role
from cometmq.dashboard.contract.table import ROUTES
from cometmq.dashboard.views.handlers import HANDLERS
from cometmq.dashboard.watch.notes import WORDS


def test_every_route_has_a_handler_and_an_own_address() -> None:
    assert set(HANDLERS) == {route.name for route in ROUTES}
    addresses = [(route.method, re.sub("{.*?}", "{}", route.path)) for route in ROUTES]
    assert len(set(addresses)) == len(addresses)


def test_what_changes_something_is_not_for_viewers() -> None:
    for route in ROUTES:
        if route.is_change and route.name not in ("log_in", "log_out", "preview_reset"):
            assert route.role >= Role.OPERATOR, route.name


def test_what_destroys_asks_for_the_name() -> None:
    for route in ROUTES:
        if route.method == "DELETE" and route.body is not None:
            assert route.confirms, route.name


def test_references_of_the_description_lead_somewhere() -> None:
    text = json.dumps(openapi())
    schemas = openapi()["components"]["schemas"]
    for name in set(re.findall(r"#/components/schemas/([^\"]+)", text)):
        assert name in schemas


def test_every_note_says_what_to_do() -> None:
    for code, words in WORDS.items():
        assert words.fix, code
        names = {name for _, name, _, _ in string.Formatter().parse(words.text) if name}
        assert all(re.fullmatch("[a-z_]+", name) for name in names), code
