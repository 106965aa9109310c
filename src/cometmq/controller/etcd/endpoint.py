"""One member of etcd: a blocking call of its HTTP gateway, through ``etcd3gw``. Several threads may call at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec

from cometmq.base.errors import ConfigError, StoreError
from cometmq.controller.decision_store import StoreAway
from cometmq.controller.etcd.etcd_config import EtcdConfig

if TYPE_CHECKING:
    from etcd3gw import Etcd3Client

_API_PATH: Final = "/v3/"
"""Of etcd 3.4 and newer."""

_REFUSALS: Final = frozenset({3, 5, 7, 8, 9, 11, 16})
"""gRPC's codes for what no other member would answer differently: arguments, permissions, no space, compacted."""

_REMARK_CHARS_MAX: Final = 200


class EndpointFailed(StoreError):
    """No answer, or none that makes sense: another member may do better. Whether it was carried out is not known."""


class EtcdRefused(StoreAway):
    """etcd says no, and nothing was changed: no space left, no permission, no such thing."""


class Endpoint(Protocol):
    @property
    def name(self) -> str: ...

    def post(self, path: str, words: Mapping[str, Any]) -> Any:
        """The reply as JSON. Blocks. Raises EndpointFailed, EtcdRefused."""
        ...

    def close(self) -> None: ...


class _Complaint(msgspec.Struct):
    """What etcd answers instead of a reply."""

    code: int
    message: str = ""


class GatewayEndpoint:
    def __init__(
        self, url: str, client: Etcd3Client, *, user: str = "", password: str = ""
    ) -> None:
        self.name = url
        self._client = client
        self._user = user
        self._password = password
        self._has_token = False

    def post(self, path: str, words: Mapping[str, Any]) -> Any:
        if self._user and not self._has_token:
            self._log_in()
        try:
            return self._post(path, words)
        except EtcdRefused as error:
            # etcd forgets who has logged in when it restarts, and after five minutes of silence.
            if not self._user or "auth token" not in str(error):
                raise
            self._log_in()
            return self._post(path, words)

    def close(self) -> None:
        self._client.session.close()

    def _log_in(self) -> None:
        # A login that carries a forgotten token is refused, too.
        self._client.session.headers.pop("Authorization", None)
        self._has_token = False
        reply = self._post("auth/authenticate", {"name": self._user, "password": self._password})
        token = reply.get("token") if isinstance(reply, dict) else None
        if not isinstance(token, str):
            raise EndpointFailed(f"{self.name} gives no token to {self._user}")
        self._client.session.headers["Authorization"] = token
        self._has_token = True

    def _post(self, path: str, words: Mapping[str, Any]) -> Any:
        import requests
        from etcd3gw.exceptions import Etcd3Exception

        try:
            return self._client.post(self._client.get_url(path), json=words)
        except Etcd3Exception as error:
            raise self._complaint(error.detail_text or str(error)) from error
        except (requests.RequestException, ValueError) as error:
            raise EndpointFailed(f"{self.name} answers nonsense: {_short(str(error))}") from error

    def _complaint(self, text: str) -> StoreError:
        try:
            found = msgspec.json.decode(text, type=_Complaint)
        except (msgspec.DecodeError, UnicodeError):
            return EndpointFailed(f"{self.name}: {_short(text)}")
        if found.code in _REFUSALS:
            return EtcdRefused(f"etcd refuses: {_short(found.message)}")
        return EndpointFailed(f"{self.name}: {_short(found.message)}")


def endpoints_of(config: EtcdConfig) -> Sequence[Endpoint]:
    """Raises ConfigError: the library is missing, or a file that the settings name."""
    try:
        from etcd3gw import Etcd3Client
    except ImportError as error:
        raise ConfigError(
            "etcdEndpoints needs the package etcd3gw: pip install 'cometmq[etcd]'"
        ) from error
    password = _first_line(config.password_path) if config.password_path else ""
    for path in (config.ca_path, config.cert_path, config.key_path):
        if path and not Path(path).is_file():
            raise ConfigError(f"etcd's certificates: there is no file {path}")
    found = []
    for url in config.members:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        client = Etcd3Client(
            parts.hostname,
            parts.port,
            protocol=parts.scheme,
            ca_cert=config.ca_path or None,
            cert_cert=config.cert_path or None,
            cert_key=config.key_path or None,
            timeout=config.timeout_ms / 1000,
            api_path=_API_PATH,
        )
        # A proxy for the way to the internet, and somebody's .netrc, are not for etcd.
        client.session.trust_env = False
        found.append(GatewayEndpoint(url, client, user=config.user, password=password))
    return found


def _first_line(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as lines:
            return lines.readline().rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"etcdPasswordFile {path} cannot be read: {error}") from None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _REMARK_CHARS_MAX else text[:_REMARK_CHARS_MAX] + "…"
