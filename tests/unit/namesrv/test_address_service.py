from __future__ import annotations

import pytest

from cometmq.namesrv.address_service import AddressService
from cometmq.namesrv.namesrv_config import AddressServiceConfig


def ask(line: str, addresses: str = "", ip: str = "10.0.0.9") -> tuple[int, str]:
    service = AddressService(AddressServiceConfig(port=1, addresses=addresses), 9876)
    answer = service.answer(f"{line}\r\nHost: x\r\n\r\n".encode("latin-1"), ip).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


@pytest.mark.parametrize(
    "target",
    [
        "/rocketmq/nsaddr",
        "/rocketmq/nsaddr?nofix=1",
        "/rocketmq/nsaddr-unit?nofix=1",
        "/rocketmq/nsaddr/x",
    ],
)
def test_the_list_is_one_line_of_addresses(target: str) -> None:
    assert ask(f"GET {target} HTTP/1.1", "a:1; b:2;") == (200, "a:1;b:2")


def test_without_a_list_it_names_itself_as_it_was_reached() -> None:
    assert ask("GET /rocketmq/nsaddr HTTP/1.0") == (200, "10.0.0.9:9876")
    assert ask("GET /rocketmq/nsaddr HTTP/1.1", ip="::1") == (200, "[::1]:9876")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET / HTTP/1.1", 404),
        ("GET /rocketmq/nsaddress HTTP/1.1", 404),
        ("POST /rocketmq/nsaddr HTTP/1.1", 405),
        ("GET /rocketmq/nsaddr HTTP/2.0", 505),
        ("GET /rocketmq/nsaddr", 400),
        ("GET  /rocketmq/nsaddr HTTP/1.1", 400),
        ("\xff\x00", 400),
        ("", 400),
    ],
)
def test_anything_else_gets_its_status(line: str, status: int) -> None:
    assert ask(line)[0] == status


def test_head_has_the_length_but_no_body() -> None:
    service = AddressService(AddressServiceConfig(port=1, addresses="a:1"), 9876)
    answer = service.answer(b"HEAD /rocketmq/nsaddr HTTP/1.1\r\n\r\n", "x")
    assert b"Content-Length: 3\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")
