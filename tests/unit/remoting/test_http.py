"""Heads of HTTP requests, and answers as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.remoting.http.exchange import HttpAnswer, HttpRequest, read_head, render


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /a HTTP/2.0", 505),
        ("GET /a", 400),
        ("GET  /a HTTP/1.1", 400),
        ("GET a HTTP/1.1", 400),
        ("\xff\x00", 400),
        ("", 400),
    ],
)
def test_what_is_no_request_gets_its_status(line: str, status: int) -> None:
    answer = read_head(f"{line}\r\nHost: x\r\n\r\n".encode("latin-1"), "x")
    assert isinstance(answer, HttpAnswer)
    assert answer.status == status


def test_path_query_and_accept_are_read() -> None:
    head = b"GET /metrics?name[]=a&name%5B%5D=b&x HTTP/1.1\nACCEPT: text/plain \n\n"
    request = read_head(head, "10.0.0.1")
    assert isinstance(request, HttpRequest)
    assert (request.method, request.path, request.own_ip) == ("GET", "/metrics", "10.0.0.1")
    assert request.accept == "text/plain"
    assert request.values("name[]") == ["a", "b"]


def test_a_query_with_too_many_fields_is_an_error() -> None:
    with pytest.raises(ValueError, match="fields"):
        HttpRequest("GET", "/", "&".join(["a=1"] * 101)).values("a")


def test_an_answer_has_its_length_and_head_no_body() -> None:
    answer = HttpAnswer(200, b"abc")
    assert render(answer).endswith(b"\r\n\r\nabc")
    assert b"Content-Length: 3\r\n" in render(answer, with_body=False)
    assert render(answer, with_body=False).endswith(b"\r\n\r\n")
    assert b"Allow: GET, HEAD\r\n" in render(HttpAnswer(405))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_refusal(head: bytes) -> None:
    found = read_head(head, "x")
    assert isinstance(found, HttpRequest) or found.status in (400, 505)
