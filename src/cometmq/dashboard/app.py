"""The HTTP side: from the table of routes to answers. Every request goes through here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as HttpRoute

from cometmq.admin.admin import Admin
from cometmq.base.errors import CometError
from cometmq.dashboard.audit import target_of
from cometmq.dashboard.bodies.common import ErrorBody, ErrorText
from cometmq.dashboard.call import Call, File, Stream, WithCookie
from cometmq.dashboard.contract.openapi import openapi_json
from cometmq.dashboard.contract.route import PREFIX, Route
from cometmq.dashboard.contract.table import ROUTES
from cometmq.dashboard.desk import Desk
from cometmq.dashboard.door.caller import Caller
from cometmq.dashboard.door.sessions import COOKIE
from cometmq.dashboard.headers import SafeHeaders
from cometmq.dashboard.pages import page_routes
from cometmq.dashboard.problems import Problem, bad_request, problem_of
from cometmq.dashboard.watch.site import Site

log = logging.getLogger("cometmq.dashboard")

Handler = Callable[[Call[Any, Any]], Awaitable[Any]]

ANSWER_SECONDS_MAX: Final = 25.0
"""Whatever servers do, a caller gets an answer."""
NAME_CHARS_MAX: Final = 255


def make_app(
    desk: Desk,
    handlers: Mapping[str, Handler],
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    routes = [_http_route(desk, route, handlers[route.name]) for route in ROUTES]
    openapi = openapi_json()

    async def description(request: Request) -> Response:
        return Response(openapi, media_type="application/json")

    async def nothing_there(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 405:
            problem = Problem(405, "method", f"{request.method} is not possible here")
        else:
            problem = Problem(
                404, "no_such_address", f"there is nothing at {request.url.path[:200]}"
            )
        answer = _refusal(problem)
        if isinstance(error, HTTPException) and error.headers:
            answer.headers.update(error.headers)
        return answer

    return Starlette(
        routes=[
            HttpRoute(f"{PREFIX}/openapi.json", description, methods=["GET"]),
            *_merged(routes),
            *page_routes(),
        ],
        middleware=[Middleware(SafeHeaders, has_tls=desk.config.has_tls)],
        exception_handlers={HTTPException: nothing_there},
        lifespan=lifespan,
    )


def _merged(
    routes: list[tuple[Route, Callable[[Request], Awaitable[Response]]]],
) -> list[HttpRoute]:
    """One entry for each path, so that other methods of a path that exists are answered with 405."""
    by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
    for route, endpoint in routes:
        by_path.setdefault(route.full_path, {})[route.method] = endpoint
    return [
        HttpRoute(path, _by_method(methods), methods=list(methods))
        for path, methods in sorted(by_path.items(), key=lambda item: ("{" in item[0], item[0]))
    ]


def _by_method(
    methods: dict[str, Callable[[Request], Awaitable[Response]]],
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        # Starlette adds HEAD to GET.
        return await methods["GET" if request.method == "HEAD" else request.method](request)

    return endpoint


def _http_route(
    desk: Desk, route: Route, handler: Handler
) -> tuple[Route, Callable[[Request], Awaitable[Response]]]:
    async def endpoint(request: Request) -> Response:
        try:
            caller = desk.guard.caller(request)
            await _permit(desk, request, caller, route)
            query = _query(request, route)
            site = desk.site(
                getattr(query, "site", "") or (caller.session.site if caller.session else "")
            )
            body = await _body(request, route, desk.config.body_bytes_max)
            call = Call(
                desk=desk,
                caller=caller,
                site=site,
                admin=_admin(route, caller, site),
                names=_names(request),
                query=query,
                body=body,
            )
            if not route.is_change:
                return await _answer(desk, await _bounded(handler(call)))
            return await _change(desk, route, call, handler)
        except CometError as error:
            return _refusal(problem_of(error))
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            log.exception("bug in a handler route=%s", route.name)
            return _refusal(
                Problem(500, "bug", "the dashboard failed to answer; its log says more")
            )

    return route, endpoint


async def _permit(desk: Desk, request: Request, caller: Caller, route: Route) -> None:
    """Raises Problem. What somebody who is known wanted to change and may not is recorded, too."""
    try:
        desk.guard.permit(request, caller, route)
    except Problem as problem:
        if route.is_change and caller.user and route.name not in _NOT_RECORDED:
            await _record(desk, route, caller, caller.user, _names(request), str(problem))
        raise


async def _record(
    desk: Desk,
    route: Route,
    caller: Caller,
    user: str,
    target: Mapping[str, Any],
    result: str,
) -> None:
    await asyncio.to_thread(
        desk.audit.add,
        at_ms=desk.clock.wall_ms(),
        user=user[:NAME_CHARS_MAX],
        role=caller.role,
        peer=caller.peer,
        action=route.name,
        target=target,
        result=result,
    )


async def _change(desk: Desk, route: Route, call: Call[Any, Any], handler: Handler) -> Response:
    """A change is recorded, whether it succeeds or not."""
    result = "failed"
    try:
        answer = await _bounded(handler(call))
        failed = getattr(answer, "failed", None)
        result = f"partly: {failed[0].problem}" if failed else "done"
    except CometError as error:
        result = str(error)
        raise
    finally:
        if route.name not in _NOT_RECORDED:
            user = call.caller.user or getattr(call.body, "name", "")
            target = target_of(call.names, call.body)
            await _record(desk, route, call.caller, user, target, result)
    if route.name not in _TOUCHES_NO_SERVER:
        await call.site.refresh()
    return await _answer(desk, answer)


_NOT_RECORDED: Final = frozenset({"preview_reset"})
_TOUCHES_NO_SERVER: Final = frozenset(
    {"preview_reset", "log_in", "log_out", "put_rule", "delete_rule", "silence"}
)


async def _bounded(work: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            return await work
    except TimeoutError:
        raise Problem(
            504,
            "too_slow",
            f"the servers did not answer within {ANSWER_SECONDS_MAX:.0f} s",
            hint="ask for less, or try again when they are less busy",
        ) from None


def _admin(route: Route, caller: Caller, site: Site) -> Admin:
    """Who is logged in asks with its own account, so that the brokers' rules hold for it, too."""
    session = caller.session
    if session is None:
        return site.admin
    own = session.admins.get(site.name)
    if own is None:
        if route.role.word:
            raise Problem(
                403,
                "other_site",
                f"you are logged in at {session.site}, not at {site.name}",
                hint="log in there",
            )
        return site.admin
    return own


def _names(request: Request) -> dict[str, str]:
    names = {key: str(value) for key, value in request.path_params.items()}
    for key, value in names.items():
        if len(value) > NAME_CHARS_MAX or "\x00" in value:
            raise bad_request(f"expected a name of at most {NAME_CHARS_MAX} characters", field=key)
    return names


def _query(request: Request, route: Route) -> Any:
    """Parameters of the address, typed. Raises Problem."""
    values: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in values:
            raise bad_request(f"the parameter {key[:100]!r} is there twice", field=key[:100])
        values[key] = value
    for key, value in values.items():
        # msgspec would take " 5" for a number, and "null" for none.
        is_odd = value.strip() != value or value.lower() == "null"
        if is_odd and key in _other_than_texts(route.query):
            raise bad_request(f"the parameter {key[:100]!r} is {value[:100]!r}", field=key[:100])
    try:
        return msgspec.convert(values, route.query, strict=False)
    except msgspec.ValidationError as error:
        raise _misfit(error) from None


@cache
def _other_than_texts(query: type) -> frozenset[str]:
    """Parameters that are numbers, or true and false."""
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(query)
        if not isinstance(msgspec.inspect.type_info(field.type), _TEXTS)
    )


_TEXTS: Final = (msgspec.inspect.StrType, msgspec.inspect.LiteralType)


async def _body(request: Request, route: Route, bytes_max: int) -> Any:
    """Raises Problem: too large, or not what the route takes."""
    if route.body is None:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(
            415, "not_json", "expected a body with Content-Type: application/json", field="body"
        )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > bytes_max:
        raise _too_large(bytes_max)
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > bytes_max:
            raise _too_large(bytes_max)
    try:
        return msgspec.json.decode(bytes(parts), type=route.body)
    except msgspec.ValidationError as error:
        raise _misfit(error) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is no JSON: {error}", field="body") from None


def _too_large(bytes_max: int) -> Problem:
    return Problem(413, "too_large", f"the body is larger than {bytes_max} bytes (requestBytesMax)")


def _misfit(error: msgspec.ValidationError) -> Problem:
    text, _, path = str(error).partition(" - at `$.")
    return bad_request(text, field=path.rstrip("`") or None)


async def _answer(desk: Desk, answer: Any) -> Response:
    if isinstance(answer, WithCookie):
        response = await _answer(desk, answer.answer)
        response.set_cookie(
            COOKIE,
            answer.key,
            max_age=None if answer.key else 0,
            httponly=True,
            samesite="strict",
            secure=desk.config.has_tls,
        )
        return response
    if isinstance(answer, Stream):
        return StreamingResponse(
            answer.parts, media_type=answer.media_type, headers=_download(answer.file_name)
        )
    if isinstance(answer, File):
        return Response(
            answer.content, media_type=answer.media_type, headers=_download(answer.file_name)
        )
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _download(file_name: str) -> dict[str, str]:
    if not file_name:
        return {}
    safe = "".join(one if one.isalnum() or one in "._-" else "_" for one in file_name)
    safe = safe.encode("ascii", "replace").decode().replace("?", "_")
    return {"content-disposition": f'attachment; filename="{safe}"'}


def _refusal(problem: Problem) -> Response:
    body = ErrorBody(
        error=ErrorText(
            code=problem.code, message=problem.message, hint=problem.hint, field=problem.field
        )
    )
    headers = {}
    if problem.retry_after is not None:
        headers["retry-after"] = str(problem.retry_after)
    return Response(
        msgspec.json.encode(body),
        status_code=problem.status,
        media_type="application/json",
        headers=headers,
    )
