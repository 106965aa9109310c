"""The page's own files: read once from the package, and served from memory."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route as HttpRoute

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
INDEX: Final = "index.html"
GZIP_BYTES_MIN: Final = 1024


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    packed: bytes | None
    media_type: str
    tag: str


def page_routes() -> list[HttpRoute]:
    """``/`` and ``/web/…``. Nothing else than what was found in the package is ever served."""
    assets = load_assets()

    async def index(request: Request) -> Response:
        return _serve(assets.get(INDEX), request)

    async def asset(request: Request) -> Response:
        return _serve(assets.get(request.path_params["path"]), request)

    return [
        HttpRoute("/", index, methods=["GET"]),
        HttpRoute("/web/{path:path}", asset, methods=["GET"]),
    ]


def load_assets() -> dict[str, Asset]:
    """By path below ``web/``."""
    found: dict[str, Asset] = {}
    _collect(files("cometmq.dashboard") / "web", "", found)
    return found


def _collect(directory: Traversable, prefix: str, found: dict[str, Asset]) -> None:
    if not directory.is_dir():
        return
    for entry in directory.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            _collect(entry, f"{path}/", found)
            continue
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in TYPES:
            found[path] = _asset(entry.read_bytes(), TYPES[suffix])


def _asset(content: bytes, media_type: str) -> Asset:
    packed = gzip.compress(content, mtime=0) if len(content) >= GZIP_BYTES_MIN else None
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    return Asset(content, packed, media_type, tag)


def _serve(asset: Asset | None, request: Request) -> Response:
    if asset is None:
        return PlainTextResponse("there is no such file\n", status_code=404)
    headers = {"etag": asset.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    if asset.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(asset.packed, media_type=asset.media_type, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
