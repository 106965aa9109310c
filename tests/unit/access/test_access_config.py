"""Settings of access control: protection that is asked for and not there refuses the start, and no secret is shown."""

from __future__ import annotations

import pytest

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.base.errors import ConfigError
from cometmq.broker.config.broker_config import config_text, load_broker_config

USERS = {"authenticationEnabled": "true", "authenticationMetadataProvider": LOCAL_USERS}
ACLS = {"authorizationEnabled": "true", "authorizationMetadataProvider": LOCAL_ACLS}
BOTH = {**USERS, **ACLS}


@pytest.mark.parametrize(
    ("values", "what_to_do"),
    [
        ({"aclEnable": "true"}, "rocketmqHome"),
        ({"authenticationEnabled": "true"}, f"authenticationMetadataProvider={LOCAL_USERS}"),
        ({**USERS, "authorizationEnabled": "true"}, f"authorizationMetadataProvider={LOCAL_ACLS}"),
        (ACLS, "authenticationEnabled=true"),
        ({**USERS, "aclEnable": "true", "rocketmqHome": "/x"}, "aclEnable=true excludes"),
        ({"authenticationProvider": "com.example.Mine"}, "must be one of"),
        ({"authorizationProvider": "com.example.Mine"}, "must be one of"),
        ({"authenticationMetadataProvider": "com.example.Mine"}, "must be one of"),
        ({"authorizationMetadataProvider": "com.example.Mine"}, "must be one of"),
        ({"authenticationStrategy": "com.example.Mine"}, "must be one of"),
        ({"accessChecks": "some"}, "must be one of"),
        ({**USERS, "migrateAuthFromV1Enabled": "true"}, "rocketmqHome"),
        ({"migrateAuthFromV1Enabled": "true", "rocketmqHome": "/x"}, "needs users"),
        ({**BOTH, "authenticationWhitelist": "10,x"}, "request codes"),
        ({**BOTH, "authorizationWhitelist": "310,3001"}, "3001 must not be"),
        ({**BOTH, "authenticationWhitelist": "29007"}, "29007 must not be"),
        ({**BOTH, "authenticationWhitelist": "318"}, "318 must not be"),
        ({**BOTH, "authenticationMode": "sometimes"}, "must be one of"),
        ({"authenticationMode": "optional"}, "without authenticationEnabled=true"),
        (
            {"aclEnable": "true", "rocketmqHome": "/x", "authenticationMode": "optional"},
            "has no effect with aclEnable=true",
        ),
        ({"tlsSubjectAsAccount": "true"}, "has no effect without accounts"),
        ({**BOTH, "initAuthenticationUser": "hush"}, "must be JSON like"),
        ({**BOTH, "initAuthenticationUser": '{"username":"u"}'}, "must be JSON like"),
        (
            {**BOTH, "innerClientAuthenticationCredentials": '{"accessKey":"hush","secretKey":""}'},
            "must be JSON like",
        ),
    ],
)
def test_what_cannot_be_met_refuses_the_start(values: dict[str, str], what_to_do: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_broker_config(values)
    assert what_to_do in str(caught.value)
    assert "hush" not in str(caught.value)


def test_rocketmqs_way_is_possible() -> None:
    config, _ = load_broker_config({**ACLS, "accessChecks": "rocketmq"})
    assert config.access.is_authorizing


def test_secrets_are_not_shown() -> None:
    config, ignored = load_broker_config(
        {
            **BOTH,
            "initAuthenticationUser": '{"username":"root","password":"hush"}',
            "innerClientAuthenticationCredentials": '{"accessKey":"in","secretKey":"hush"}',
            "tls.server.keyPassword": "hush",
        }
    )
    assert not ignored
    access = config.access
    assert (access.first_user, access.inner.credential) == (("root", "hush"), ("in", "hush"))
    assert "hush" not in config_text(config) + repr(config) + repr(access.first_user) + repr(
        access.inner
    )
    assert access.is_enabled
    assert access.not_authenticated == frozenset()
