"""Rates, sessions and roles."""

from __future__ import annotations

import pytest

from cometmq.base.errors import ConfigError
from cometmq.dashboard.contract.route import Role
from cometmq.dashboard.dashboard_config import DashboardConfig, load_dashboard_config
from cometmq.dashboard.door.limits import KEYS_MAX, Rates
from cometmq.dashboard.door.login import Roles
from cometmq.dashboard.door.sessions import LIFE_SECONDS_MAX, Session, Sessions


def test_tokens_come_back_with_time() -> None:
    rates = Rates(per_second=2, burst=3)
    assert [rates.take("a", 0.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert rates.take("b", 0.0) == 0
    assert rates.take("a", 0.5) == 0
    assert rates.take("a", 0.5) > 0
    assert [rates.take("a", 100.0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_callers_that_are_remembered_are_bounded() -> None:
    rates = Rates(per_second=1, burst=1)
    for number in range(KEYS_MAX + 10):
        rates.take(str(number), 0.0)
    assert rates.take("0", 0.0) == 0
    assert rates.take(str(KEYS_MAX + 9), 0.0) > 0


def session(user: str = "ada") -> Session:
    return Session(user=user, role=Role.VIEWER, site="main")


def test_a_session_ends_when_it_is_not_used_and_at_last_anyway() -> None:
    sessions = Sessions(idle_seconds=60, sessions_max=10)
    key = sessions.begin(session(), 0.0)
    assert sessions.find(key, 59.0) is not None
    assert sessions.find(key, 119.0) is not None
    assert sessions.find(key, 180.0) is None
    key, now = sessions.begin(session(), 0.0), 0.0
    while now < LIFE_SECONDS_MAX:
        assert sessions.find(key, now) is not None
        now += 59.0
    assert sessions.find(key, now) is None
    assert sessions.find("guessed", 0.0) is None


def test_the_session_unused_for_longest_makes_room() -> None:
    sessions = Sessions(idle_seconds=60, sessions_max=2)
    first, second = sessions.begin(session("a"), 0.0), sessions.begin(session("b"), 1.0)
    assert sessions.find(first, 2.0) is not None
    third = sessions.begin(session("c"), 3.0)
    found = [sessions.find(key, 4.0) for key in (first, second, third)]
    assert [one and one.user for one in found] == ["a", None, "c"]


def test_tokens_of_two_sessions_differ() -> None:
    assert session().csrf_token != session().csrf_token


def test_roles() -> None:
    roles = Roles.of(DashboardConfig(admins="ada", operators="olga, ada", viewers="vera"))
    names = ("ada", "olga", "vera", "nobody", "*")
    assert [roles.role(name, is_super=False) for name in names] == [
        Role.ADMIN,
        Role.OPERATOR,
        Role.VIEWER,
        Role.ANYBODY,
        Role.ANYBODY,
    ]
    assert roles.role("nobody", is_super=True) is Role.ADMIN
    everybody = Roles.of(DashboardConfig(viewers="*"))
    assert everybody.role("nobody", is_super=False) is Role.VIEWER


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"namesrvAddr": "nowhere"}, "expected an address like"),
        ({"namesrvAddr": "a=127.0.0.1:1,a=127.0.0.1:2"}, "is there twice"),
        ({"namesrvAddr": "a b=127.0.0.1:1"}, "is no name"),
        ({"namesrvAddr": "prod="}, "names no address"),
        ({"bindAddress": "0.0.0.0"}, "set tlsCertificate and tlsKey"),
        ({"tlsKey": "key.pem"}, "must be given together"),
        ({"alertWebhook": "file:///etc/passwd"}, "must be an http"),
        ({"loginRequired": "never"}, "must be one of auto, always"),
        ({"sampleInterval": "0"}, "at least 200"),
        ({"samplInterval": "1000"}, "did you mean 'sampleInterval'"),
    ],
)
def test_settings_that_cannot_be_met(values: dict[str, str], text: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=text):
        load_dashboard_config(values)


def test_several_sites() -> None:
    config = load_dashboard_config(
        {"namesrvAddr": "prod=10.0.0.1:9876;10.0.0.2:9876, test=10.9.0.1:9876"}
    )
    assert [(one.name, one.name_servers) for one in config.sites] == [
        ("prod", "10.0.0.1:9876;10.0.0.2:9876"),
        ("test", "10.9.0.1:9876"),
    ]
