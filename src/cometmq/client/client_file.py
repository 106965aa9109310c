"""Settings from outside the program: a file, the same one for programs, commands and Spark, and the environment.

    config = load_config(ProducerConfig(retries=5))

The variable of a setting is ``COMETMQ_`` and its key in capitals, without a leading ``rocketmq.``: ``sendMsgTimeout``
is COMETMQ_SEND_MSG_TIMEOUT, ``rocketmq.namesrv.addr`` is COMETMQ_NAMESRV_ADDR.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, TypeVar

from cometmq.base.errors import ConfigError, one_line
from cometmq.base.properties_file import decode_file, parse_properties
from cometmq.base.settings import Row, load, parse, rows, unknown_key
from cometmq.client.client_config import ClientConfig
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.pull_config import PullConsumerConfig

PREFIX: Final = "COMETMQ_"
FILE_VARIABLE: Final = "COMETMQ_CLIENT_CONFIG"
SECRET_VARIABLE: Final = "COMETMQ_SECRET_KEY"

KINDS: Final = (
    ClientConfig,
    ProducerConfig,
    PushConsumerConfig,
    LitePullConfig,
    PullConsumerConfig,
)
"""One file and one environment may hold the settings of all of them."""

Config = TypeVar(
    "Config", ClientConfig, ProducerConfig, PushConsumerConfig, LitePullConfig, PullConsumerConfig
)

_ACCOUNT, _SECRET = "accessKey", "secretKey"
_OF_ACCOUNT: Final = (_SECRET, "securityToken")
_OTHER_VARIABLES: Final = (FILE_VARIABLE, "COMETMQ_LOG_LEVEL", "COMETMQ_LOG_FILE")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Kubernetes sets COMETMQ_NAMESRV_PORT for a service cometmq-namesrv; it has 0.75 in common with COMETMQ_NAMESRV_ADDR.
_TYPO_CUTOFF: Final = 0.85


def load_config(
    defaults: Config,
    file: str | Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The settings of ``defaults``, overridden by those of a file, overridden by those of environment variables.

    The variable of a setting is ``COMETMQ_`` and its key in capitals: COMETMQ_NAMESRV_ADDR, COMETMQ_SEND_MSG_TIMEOUT.
    An empty variable counts as not set. COMETMQ_SECRET_KEY is used for an account that has no secret in the file.

    Args:
        defaults: the program's own settings, such as ``ProducerConfig(retries=5)``.
        file: lines of ``key=value``; by default the file that COMETMQ_CLIENT_CONFIG names, if any. Paths of
            certificates and keys are relative to it. It may hold settings of other kinds of clients, too.
        environment: instead of ``os.environ``.

    Raises:
        ConfigError: the file cannot be read, or a setting is unknown or has an invalid value.
    """
    variables = os.environ if environment is None else environment
    path = file or variables.get(FILE_VARIABLE)
    known = {row.key: row for kind in KINDS for row in rows(kind)}
    values = _in_file(Path(path), known) if path else {}
    origins = dict.fromkeys(values, str(path))
    in_environment = _settings_among(variables, known)
    if _ACCOUNT in in_environment:
        # The file's secret is that of another account.
        for key in _OF_ACCOUNT:
            values.pop(key, None)
    for key, name in in_environment.items():
        if key != _SECRET or not values.get(_SECRET):
            values[key], origins[key] = variables[name], name
    _complete_account(values, origins)
    own = {row.key: row for row in rows(type(defaults))}
    values = {key: text for key, text in values.items() if key in own}
    for key, text in values.items():
        _check(own[key], text, origins[key])
    try:
        return load(type(defaults), values, base=defaults)
    except ConfigError as error:
        sources = ", ".join(dict.fromkeys(origins[key] for key in values))
        raise ConfigError(f"{sources}: {error}") from None


def load_client_config(path: str | Path) -> ClientConfig:
    """The settings in a file of ``key=value`` lines, such as the ``client.conf`` that ``cometmq init`` writes.

    Paths of certificates and keys are relative to the file, so that a directory with all of them can be copied to
    another host. A file that names an account without its secret gets it from the environment: COMETMQ_SECRET_KEY.
    ``load_config`` reads the other settings from the environment, too.

    Raises:
        ConfigError: the file cannot be read or used.
    """
    secret = os.environ.get(SECRET_VARIABLE, "")
    return load_config(ClientConfig(), path, environment={SECRET_VARIABLE: secret})


def variable_of(key: str) -> str:
    """The environment variable of a setting."""
    words = _WORD_START.sub("_", key.removeprefix("rocketmq.")).replace(".", "_")
    return PREFIX + words.upper()


def _in_file(file: Path, known: Mapping[str, Row]) -> dict[str, str]:
    try:
        values = parse_properties(decode_file(file.read_bytes()))
    except OSError as error:
        raise ConfigError(f"cannot read the client's settings in {one_line(error)}") from None
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{file}: {unknown_key(key, known)}")
        if key.startswith("tls.") and key.endswith("Path") and value:
            values[key] = str(file.absolute().parent / value)
    return values


def _settings_among(variables: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """The variables that are settings, by the key of the setting."""
    keys = {variable_of(key): key for key in known}
    ours = [name for name, text in variables.items() if name.startswith(PREFIX) and text]
    for name in ours:
        if name not in keys and name not in _OTHER_VARIABLES:
            _refuse_typo(name, [*keys, *_OTHER_VARIABLES])
    return {keys[name]: name for name in ours if name in keys}


def _refuse_typo(name: str, known: list[str]) -> None:
    """What is not even similar to a setting is somebody else's: container platforms set variables of their own."""
    ends = {one.removeprefix(PREFIX): one for one in known}
    near = difflib.get_close_matches(name.removeprefix(PREFIX), ends, n=1, cutoff=_TYPO_CUTOFF)
    if near:
        raise ConfigError(f"environment variable {name}: did you mean {ends[near[0]]}?")


def _complete_account(values: dict[str, str], origins: Mapping[str, str]) -> None:
    if not values.get(_ACCOUNT):
        # The secret is there for another program.
        if origins.get(_SECRET) == SECRET_VARIABLE:
            del values[_SECRET]
    elif not values.get(_SECRET):
        raise ConfigError(
            f"{origins[_ACCOUNT]} names the account {values[_ACCOUNT]} without its secret: set the environment "
            f"variable {SECRET_VARIABLE}, or {_SECRET} in the file"
        )


def _check(row: Row, text: str, origin: str) -> None:
    try:
        parse(row, text)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from None
