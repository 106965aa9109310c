from __future__ import annotations

import pytest

from cometmq.namesrv.address_service import AddressService
from cometmq.namesrv.namesrv_config import AddressServiceConfig
from cometmq.remoting.http.exchange import HttpRequest


def ask(target: str, addresses: str = "", ip: str = "10.0.0.9") -> tuple[int, str]:
    service = AddressService(AddressServiceConfig(port=1, addresses=addresses), 9876)
    path, _, query = target.partition("?")
    answer = service.answer(HttpRequest("GET", path, query, own_ip=ip))
    return answer.status, answer.body.decode()


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
    assert ask(target, "a:1; b:2;") == (200, "a:1;b:2")


def test_without_a_list_it_names_itself_as_it_was_reached() -> None:
    assert ask("/rocketmq/nsaddr") == (200, "10.0.0.9:9876")
    assert ask("/rocketmq/nsaddr", ip="::1") == (200, "[::1]:9876")


@pytest.mark.parametrize("target", ["/", "/rocketmq/nsaddress"])
def test_other_paths_are_not_found(target: str) -> None:
    assert ask(target)[0] == 404
