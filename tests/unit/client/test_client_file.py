"""A client's settings from a file and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.settings import rows
from cometmq.client import (
    ClientConfig,
    ConfigError,
    Credentials,
    LitePullConfig,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    load_client_config,
    load_config,
)
from cometmq.client.client_file import KINDS, SECRET_VARIABLE, variable_of


def written(directory: Path, text: str) -> Path:
    path = directory / "client.conf"
    path.write_text(text)
    return path


def test_settings_come_from_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "rocketmq.namesrv.addr=queue:9876\naccessKey=me\nsecretKey=hush-hush\ntls.enable=true\n",
    )
    config = load_client_config(path)
    assert config.name_servers == "queue:9876"
    assert (config.credentials.access_key, config.credentials.secret_key) == ("me", "hush-hush")
    assert config.tls.is_client_enabled
    assert "hush-hush" not in repr(config)


def test_certificates_are_found_next_to_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "tls.client.trustCertPath=ca.pem\ntls.client.keyPath=/etc/own.key\n")
    tls = load_client_config(path).tls
    assert tls.client_trust_path == str(tmp_path / "ca.pem")
    assert tls.client_key_path == "/etc/own.key"
    assert tls.client_cert_path == ""


def test_the_secret_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "accessKey=operator\n")
    monkeypatch.delenv("COMETMQ_SECRET_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"operator without its secret: set .*COMETMQ_SECRET_KEY"):
        load_client_config(path)
    monkeypatch.setenv("COMETMQ_SECRET_KEY", "hush-hush")
    assert load_client_config(path).credentials.secret_key == "hush-hush"
    both = written(tmp_path, "accessKey=operator\nsecretKey=mine\n")
    assert load_client_config(both).credentials.secret_key == "mine"


def test_what_cannot_be_used_is_named_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*missing\.conf"):
        load_client_config(tmp_path / "missing.conf")
    with pytest.raises(ConfigError, match=r"client\.conf: .*acessKey"):
        load_client_config(written(tmp_path, "acessKey=me\n"))


def test_a_variable_overrides_the_file_which_overrides_the_program(tmp_path: Path) -> None:
    file = written(tmp_path, "sendMsgTimeout=2000\nretryTimesWhenSendFailed=4\n")
    defaults = ProducerConfig(send_timeout_ms=1000, retries=1, background_retries=7)
    config = load_config(defaults, file, environment={"COMETMQ_SEND_MSG_TIMEOUT": "5000"})
    assert (config.send_timeout_ms, config.retries, config.background_retries) == (5000, 4, 7)
    assert load_config(defaults, environment={}) == defaults


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "rocketmq.namesrv.addr=queue:9876\n")
    config = load_config(ClientConfig(), environment={"COMETMQ_CLIENT_CONFIG": str(file)})
    assert config.name_servers == "queue:9876"
    other = written(tmp_path, "rocketmq.namesrv.addr=other:9876\n")
    variables = {"COMETMQ_CLIENT_CONFIG": "/nowhere"}
    assert load_config(ClientConfig(), other, environment=variables).name_servers == "other:9876"


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMETMQ_CLIENT_CONFIG", raising=False)
    monkeypatch.setenv("COMETMQ_NAMESRV_ADDR", "queue:9876")
    assert load_config(ClientConfig()).name_servers == "queue:9876"


def test_one_file_serves_all_kinds_of_clients(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "rocketmq.namesrv.addr=queue:9876\nsendMsgTimeout=2000\nconsumeThreadMax=3\n"
        "autoCommit=false\nconsumerPullTimeoutMillis=1234\nenableTrace=true\n",
    )
    producer = load_config(ProducerConfig(), file, environment={})
    assert (producer.send_timeout_ms, producer.client.name_servers) == (2000, "queue:9876")
    assert producer.trace.is_trace_on
    assert load_config(PushConsumerConfig(), file, environment={}).consume_thread_max == 3
    assert not load_config(LitePullConfig(), file, environment={}).auto_commit
    assert load_config(PullConsumerConfig(), file, environment={}).pull_timeout_ms == 1234
    assert load_client_config(file).name_servers == "queue:9876"


def test_every_setting_has_a_variable_of_its_own() -> None:
    keys = {row.key for kind in KINDS for row in rows(kind)}
    assert len({variable_of(key) for key in keys}) == len(keys) > 80
    assert variable_of("rocketmq.namesrv.addr") == "COMETMQ_NAMESRV_ADDR"
    assert variable_of("clientIP") == "COMETMQ_CLIENT_IP"
    assert variable_of("tls.client.trustCertPath") == "COMETMQ_TLS_CLIENT_TRUST_CERT_PATH"
    assert variable_of("secretKey") == SECRET_VARIABLE


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        (
            {"COMETMQ_SEND_MSG_TIMEOUT": "soon"},
            r"^COMETMQ_SEND_MSG_TIMEOUT: sendMsgTimeout must be a whole number, not 'soon'$",
        ),
        (
            {"COMETMQ_SEND_MSG_TIMOUT": "5000"},
            r"^environment variable COMETMQ_SEND_MSG_TIMOUT: did you mean COMETMQ_SEND_MSG_TIMEOUT\?$",
        ),
        ({"COMETMQ_CLIENT_CONFG": "x"}, r"did you mean COMETMQ_CLIENT_CONFIG\?$"),
        ({"COMETMQ_NAMESPACE": "a%b"}, r"^COMETMQ_NAMESPACE: namespace 'a%b' holds a %"),
        ({"COMETMQ_ACCESS_KEY": "me"}, r"^COMETMQ_ACCESS_KEY names the account me without"),
        ({"COMETMQ_CLIENT_CONFIG": "/no/such"}, r"^cannot read the client's settings in /no/such"),
    ],
)
def test_what_cannot_be_used_is_named_with_the_variable(
    variables: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_config(ProducerConfig(), environment=variables)


def test_variables_of_others_and_empty_ones_do_not_count() -> None:
    variables = {
        "COMETMQ_NAMESRV_PORT": "tcp://10.0.0.1:9876",
        "COMETMQ_NAMESRV_SERVICE_HOST": "10.0.0.1",
        "COMETMQ_SEND_MSG_TIMEOUT": "",
        "COMETMQ_LOG_LEVEL": "DEBUG",
        "COMETMQ_SECRET_KEY": "of an account that others use",
        "SEND_MSG_TIMEOUT": "1",
    }
    assert load_config(ProducerConfig(), environment=variables) == ProducerConfig()


def test_a_secret_stays_with_its_account(tmp_path: Path) -> None:
    file = written(tmp_path, "accessKey=me\nsecretKey=mine\nsecurityToken=t\n")
    other = {"COMETMQ_SECRET_KEY": "other"}
    assert load_config(ClientConfig(), file, environment=other).credentials.secret_key == "mine"
    both = load_config(ClientConfig(), file, environment={**other, "COMETMQ_ACCESS_KEY": "you"})
    assert both.credentials == Credentials(access_key="you", secret_key="other")
    with pytest.raises(ConfigError, match="COMETMQ_ACCESS_KEY names the account you without"):
        load_config(ClientConfig(), file, environment={"COMETMQ_ACCESS_KEY": "you"})


def test_settings_that_do_not_fit_together_are_named_with_their_sources(tmp_path: Path) -> None:
    file = written(tmp_path, "brokerSuspendMaxTimeMillis=40000\n")
    variables = {"COMETMQ_CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND": "35000"}
    with pytest.raises(ConfigError, match=r"client\.conf, COMETMQ_CONSUMER_\w+: .*must be above"):
        load_config(LitePullConfig(), file, environment=variables)
