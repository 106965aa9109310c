"""An etcd that has forgotten who logged in: the controller logs in again."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("etcd3gw")

from etcd3gw.exceptions import Etcd3Exception

from cometmq.controller.etcd.endpoint import EtcdRefused, GatewayEndpoint


class Session:
    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    def close(self) -> None: ...


class Etcd:
    """Refuses every request that carries a token that it does not know, a login too, as etcd 3.4 does."""

    def __init__(self) -> None:
        self.session = Session()
        self.given = 0
        self.known: set[str] = set()
        self.accepts = True

    def get_url(self, path: str) -> str:
        return path

    def post(self, path: str, json: Any) -> dict[str, str]:
        token = self.session.headers.get("Authorization")
        if token is not None and token not in self.known:
            raise refusal("etcdserver: invalid auth token")
        if path != "auth/authenticate":
            return {"token": token or ""}
        if not self.accepts:
            raise refusal("etcdserver: invalid auth token")
        self.given += 1
        self.known = {f"token-{self.given}"}
        return {"token": f"token-{self.given}"}


def refusal(message: str) -> Etcd3Exception:
    return Etcd3Exception(f'{{"code": 16, "message": "{message}"}}')


@pytest.fixture
def etcd() -> Etcd:
    return Etcd()


@pytest.fixture
def endpoint(etcd: Etcd) -> GatewayEndpoint:
    return GatewayEndpoint("etcd", etcd, user="root", password="secret")  # type: ignore[arg-type]


def test_a_forgotten_token_is_not_shown_at_the_login(etcd: Etcd, endpoint: GatewayEndpoint) -> None:
    assert endpoint.post("kv/range", {}) == {"token": "token-1"}
    etcd.known.clear()
    assert endpoint.post("kv/range", {}) == {"token": "token-2"}
    assert endpoint.post("kv/range", {}) == {"token": "token-2"}


def test_a_login_that_fails_is_tried_again_at_the_next_request(
    etcd: Etcd, endpoint: GatewayEndpoint
) -> None:
    endpoint.post("kv/range", {})
    etcd.known.clear()
    etcd.accepts = False
    with pytest.raises(EtcdRefused, match="invalid auth token"):
        endpoint.post("kv/range", {})
    etcd.accepts = True
    assert endpoint.post("kv/range", {}) == {"token": "token-2"}
