"""One HTTP request and its answer as bytes. Pure; ``http_port`` does the I/O.

Only the request line and, of the headers, ``Accept`` count. A request with a body is not understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

QUERY_FIELDS_MAX: Final = 100
_TEXT: Final = "text/plain; charset=utf-8"

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    """As sent, without the query."""
    query: str = ""
    accept: str = ""
    own_ip: str = ""
    """Where the client reached this server."""

    def values(self, name: str) -> list[str]:
        """What the query gives for a name. Raises ValueError: it has too many fields."""
        fields = parse_qsl(self.query, max_num_fields=QUERY_FIELDS_MAX)
        return [value for key, value in fields if key == name]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes = b""
    content_type: str = _TEXT


def fault(status: int) -> HttpAnswer:
    """An answer that says nothing but its status."""
    return HttpAnswer(status, _REASONS[status].encode())


def is_whole(head: bytes | bytearray) -> bool:
    """Whether the empty line that ends a request head has come. Some scripts end lines with a bare line feed."""
    return b"\r\n\r\n" in head or b"\n\n" in head


def read_head(head: bytes, own_ip: str) -> HttpRequest | HttpAnswer:
    """The request, or how to answer what is none."""
    line, *lines = head.decode("latin-1").split("\n")
    parts = line.strip().split(" ")
    if len(parts) != 3 or not parts[1].startswith("/"):
        return fault(400)
    method, target, version = parts
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        return fault(505 if version.startswith("HTTP/") else 400)
    path, _, query = target.partition("?")
    return HttpRequest(method, path, query, _headers(lines).get("accept", ""), own_ip)


def render(answer: HttpAnswer, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        + ("Allow: GET, HEAD\r\n" if answer.status == 405 else "")
        + "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (answer.body if with_body else b"")


def _headers(lines: list[str]) -> Mapping[str, str]:
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
