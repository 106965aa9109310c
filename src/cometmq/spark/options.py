"""Options of Spark sources and sinks: texts by name, read one by one, checked, and none left over.

Spark hands options over with any case of letters, so names are compared without it. Every complaint says what was
expected, what came, and what to do. Values of options that hold secrets are in no text made here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cometmq.base.errors import ConfigError, UsageError
from cometmq.base.settings import rows
from cometmq.client.client_config import Credentials
from cometmq.client.client_file import load_client_config
from cometmq.model.address import split_address, split_addresses
from cometmq.remoting.tls import TlsConfig, tls_config_of
from cometmq.spark.errors import BadOption

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)\Z")
_BYTES_UNITS: Final = {
    "": 1,
    "b": 1,
    "k": 1024,
    "kb": 1024,
    "m": 1024**2,
    "mb": 1024**2,
    "g": 1024**3,
    "gb": 1024**3,
}
_BYTES = re.compile(r"([0-9]+)\s*([a-z]*)\Z")

NUMBER_MAX: Final = (1 << 63) - 1


_TLS_KEYS: Final = tuple(
    row.key for row in rows(TlsConfig) if not row.key.startswith("tls.server.")
)
_IN_FILE: Final = ("namespace", "accessKey", "secretKey", "securityToken", *_TLS_KEYS)


class OptionReader:
    """Read each option once, then ``finish``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {key.lower(): value for key, value in options.items()}
        self._known: dict[str, str] = {}

    def has(self, name: str) -> bool:
        return name.lower() in self._values

    def text(self, name: str, default: str = "") -> str:
        """The value without blanks around it. Raises BadOption when it is empty."""
        self._known[name.lower()] = name
        value = self._values.get(name.lower())
        if value is None:
            return default
        if not (value := value.strip()):
            raise BadOption(
                f"option {name}: expected a value, got an empty text; leave it out or fill it in"
            )
        return value

    def whole(self, name: str, default: int | None = None, *, low: int = 1) -> int | None:
        text = self.text(name)
        if not text:
            return default
        # isdecimal() knows other digits than ASCII's.
        if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= NUMBER_MAX:
            raise BadOption(
                f"option {name}: expected a whole number of at least {low}, got {text!r}"
            )
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        if text not in ("", "true", "false"):
            raise BadOption(f"option {name}: expected true or false, got {text!r}")
        return text == "true" if text else default

    def seconds(self, name: str, default: float) -> float:
        text = self.text(name).lower()
        if not text:
            return default
        match = _DURATION.match(text)
        if match is None or float(match[1]) == 0:
            raise BadOption(
                f"option {name}: expected a time above zero with its unit, like 500ms, 30s, 15m, 2h or 1d, got {text!r}"
            )
        return float(match[1]) * _UNITS[match[2]]

    def bytes(self, name: str) -> int | None:
        text = self.text(name).lower()
        if not text:
            return None
        match = _BYTES.match(text)
        if (
            match is None
            or match[2] not in _BYTES_UNITS
            or not 0 < int(match[1]) <= NUMBER_MAX >> 30
        ):
            raise BadOption(
                f"option {name}: expected a number of bytes like 1048576, 512k, 64m or 1g, got {text!r}"
            )
        return int(match[1]) * _BYTES_UNITS[match[2]]

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.text(name, default).lower()
        if text not in choices:
            raise BadOption(f"option {name}: expected one of {', '.join(choices)}, got {text!r}")
        return text

    def finish(self) -> None:
        """Raises BadOption for options that nobody asked for, with the nearest one that exists."""
        unknown = sorted(set(self._values) - set(self._known))
        if not unknown:
            return
        texts = []
        for key in unknown:
            near = difflib.get_close_matches(key, self._known, n=1, cutoff=0.6)
            hint = f" (did you mean {self._known[near[0]]}?)" if near else ""
            texts.append(key + hint)
        raise BadOption(
            f"unknown option{'s' if len(texts) > 1 else ''} {', '.join(texts)}; "
            f"there are {', '.join(sorted(self._known.values(), key=str.lower))}"
        )


TRIGGER_LIMITS: Final = (
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "minRowsPerTrigger",
    "maxTriggerDelay",
)
"""How much a batch of a stream takes; every source has these."""


def refuse_in_batch(given: Container[str], stream_only: Iterable[str]) -> None:
    """Raises BadOption when options of streams were given (by their lower-case names) to a batch read."""
    _refuse(given, stream_only, "spark.readStream, not for spark.read")


def refuse_in_stream(given: Container[str], batch_only: Iterable[str]) -> None:
    """The other way round."""
    _refuse(given, batch_only, "spark.read, not for spark.readStream")


def _refuse(given: Container[str], names: Iterable[str], belongs_to: str) -> None:
    if wrong := [name for name in names if name.lower() in given]:
        raise BadOption(f"option {', '.join(wrong)}: is for {belongs_to}; leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How name servers and brokers are reached, and as whom."""

    name_servers: tuple[str, ...]
    namespace: str = ""
    credentials: Credentials = field(default_factory=Credentials)
    # Out of sight: it holds the password of a key.
    tls: TlsConfig = field(default_factory=TlsConfig, repr=False)
    call_seconds: float = 3.0


def read_connection(options: OptionReader) -> ConnectionOptions:
    """The options of the connection, which source and sink share. Raises BadOption."""
    call_seconds = options.seconds("callTimeout", 3.0)
    path = options.text("connectionFile")
    if path:
        return _connection_of_file(options, path, call_seconds)
    namespace = options.text("namespace")
    if "%" in namespace:
        raise BadOption(
            f"option namespace: expected a text without %, which ends it on the wire, got {namespace!r}"
        )
    return ConnectionOptions(
        name_servers=_name_servers(options),
        namespace=namespace,
        credentials=_credentials(options),
        tls=_tls(options),
        call_seconds=call_seconds,
    )


def _connection_of_file(options: OptionReader, path: str, call_seconds: float) -> ConnectionOptions:
    """A file as ``cometmq init`` writes it; so no secret is in a program or a pipeline's file."""
    given = [name for name in _IN_FILE if options.text(name)]
    if given:
        raise BadOption(
            f"options connectionFile and {', '.join(given)}: expected the latter in {path}; leave them out here"
        )
    try:
        config = load_client_config(path)
        config.tls.client_context()
    except ConfigError as error:
        raise BadOption(f"option connectionFile: {error}") from None
    in_file = tuple(split_addresses(config.name_servers))
    is_given = options.has("nameServers") or not in_file
    return ConnectionOptions(
        name_servers=_name_servers(options) if is_given else in_file,
        namespace=config.namespace,
        credentials=config.credentials,
        tls=config.tls,
        call_seconds=call_seconds,
    )


def _name_servers(options: OptionReader) -> tuple[str, ...]:
    servers = options.text("nameServers")
    if not servers:
        raise BadOption(
            "option nameServers: expected the addresses of name servers like 10.0.0.1:9876;10.0.0.2:9876, got none"
        )
    try:
        name_servers = tuple(split_addresses(servers.replace(",", ";")))
        for address in name_servers:
            split_address(address)
    except UsageError as error:
        raise BadOption(f"option nameServers: {error}") from None
    if not name_servers:
        raise BadOption(
            f"option nameServers: expected addresses like 10.0.0.1:9876, got {servers!r}"
        )
    return name_servers


def _credentials(options: OptionReader) -> Credentials:
    access_key, secret_key = options.text("accessKey"), options.text("secretKey")
    token = options.text("securityToken")
    if bool(access_key) != bool(secret_key) or (token and not access_key):
        raise BadOption(
            "options accessKey, secretKey and securityToken: expected the first two together, the third with them or "
            "not at all; give what is missing"
        )
    return Credentials(access_key=access_key, secret_key=secret_key, security_token=token)


def _tls(options: OptionReader) -> TlsConfig:
    """RocketMQ's own keys, such as ``tls.enable``; those of servers mean nothing here."""
    values = {key: value for key in _TLS_KEYS if (value := options.text(key))}
    try:
        config = tls_config_of(values)
        # Made here once, so that a wrong path is found before a query starts.
        config.client_context()
    except ConfigError as error:
        raise BadOption(f"TLS options: {error}") from None
    return config
