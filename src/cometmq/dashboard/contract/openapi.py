"""The API's description in the OpenAPI 3.1 format, from the table of routes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from cometmq import __version__
from cometmq.dashboard.bodies.common import ErrorBody
from cometmq.dashboard.contract.examples import EXAMPLES, Example
from cometmq.dashboard.contract.route import Role, Route
from cometmq.dashboard.contract.table import BY_SUBJECT, ROUTES

_REFERENCE: Final = "#/components/schemas/{name}"
_NAMES: Final = re.compile(r"{(\w+)}")

_DESCRIPTION: Final = """\
Everything that the dashboard's page shows and does; the page uses nothing else. Answers are JSON, times are
milliseconds since 1970.

A login sets a cookie: `POST /api/v1/session`. On loopback, none is needed unless the dashboard is told otherwise. Every
change needs the header `X-CSRF-Token`, which `GET /api/v1/me` tells. A change answers with what was `done` and what
`failed`, place by place; an answer with `incomplete` lacks what these servers know."""

_REFUSALS: Final = {
    "400": "The request cannot be read, or asks for something that cannot be.",
    "401": "Nobody is logged in.",
    "403": "The role does not allow it, the token is missing, or the dashboard is read-only.",
    "404": "No such topic, group, message, …",
    "409": "A server refused; the message says what it said.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "429": "Too many requests; `Retry-After` says when to try again.",
    "502": "A server answered with what cannot be read.",
    "503": "A server that is needed does not answer.",
    "504": "The servers were too slow.",
}


def openapi() -> dict[str, Any]:
    """The description as a value."""
    kinds = {kind for route in ROUTES for kind in (route.answer, route.body) if _is_type(kind)}
    _, components = msgspec.json.schema_components(
        sorted({*kinds, ErrorBody}, key=str), ref_template=_REFERENCE
    )
    paths: dict[str, dict[str, Any]] = {}
    for subject, routes in BY_SUBJECT.items():
        for route in routes:
            paths.setdefault(route.full_path, {})[route.method.lower()] = _operation(route, subject)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CometMQ dashboard",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": _DESCRIPTION,
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": {code: _refusal(text) for code, text in _REFUSALS.items()},
            "securitySchemes": {
                "login": {"type": "apiKey", "in": "cookie", "name": "cometmq_session"},
                "token": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }


def openapi_json() -> bytes:
    return json.dumps(openapi(), indent=1, ensure_ascii=False).encode() + b"\n"


def _operation(route: Route, subject: str) -> dict[str, Any]:
    example = EXAMPLES.get(route.name, Example())
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [subject],
        "summary": route.summary,
        "description": _role_text(route),
        "parameters": [*_path_parameters(route, example), *_query_parameters(route, example)],
        "responses": {"200": _answer(route), **_refusals()},
    }
    if route.role is not Role.ANYBODY:
        needs: dict[str, list[str]] = {"login": []}
        if route.is_change:
            needs["token"] = []
        operation["security"] = [needs, {"token": []} if route.is_change else {}]
    if route.body is not None:
        content: dict[str, Any] = {"schema": _reference(route.body)}
        if example.body is not None:
            content["example"] = example.body
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _role_text(route: Route) -> str:
    who = "Anybody may ask." if route.role is Role.ANYBODY else f"Role: {route.role.word}."
    return f"{who} `confirm` repeats the name of what is changed." if route.confirms else who


def _path_parameters(route: Route, example: Example) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            **({"example": example.names[name]} if name in example.names else {}),
        }
        for name in _NAMES.findall(route.path)
    ]


def _query_parameters(route: Route, example: Example) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([route.query], ref_template=_REFERENCE)
    schema = components[route.query.__name__]
    required = schema.get("required", [])
    parameters = []
    for name, kind in schema["properties"].items():
        parameter = {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": _without_null(kind),
        }
        if name in example.query:
            parameter["example"] = example.query[name]
        parameters.append(parameter)
    return parameters


def _without_null(kind: dict[str, Any]) -> dict[str, Any]:
    """A parameter that is null is left out."""
    kind = {key: value for key, value in kind.items() if key != "default" or value is not None}
    choices = [one for one in kind.get("anyOf", []) if one != {"type": "null"}]
    if len(choices) == 1:
        del kind["anyOf"]
        return {**choices[0], **kind}
    return kind


def _answer(route: Route) -> dict[str, Any]:
    if not _is_type(route.answer):
        schema = {"type": "string"}
        return {"description": "As it is made.", "content": {route.answer: {"schema": schema}}}
    content = {"application/json": {"schema": _reference(route.answer)}}
    return {"description": "What was asked for.", "content": content}


def _refusals() -> dict[str, Any]:
    return {code: {"$ref": f"#/components/responses/{code}"} for code in _REFUSALS}


def _refusal(text: str) -> dict[str, Any]:
    content = {"application/json": {"schema": _reference(ErrorBody)}}
    return {"description": text, "content": content}


def _reference(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return schema


def _is_type(kind: object) -> bool:
    return kind is not None and not isinstance(kind, str)
