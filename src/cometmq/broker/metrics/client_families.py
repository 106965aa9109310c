"""Who is connected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from cometmq.broker.clients.client_registry import Client, ClientRegistry
from cometmq.broker.metrics.names import is_system, version_name
from cometmq.monitor.family import Family, LabelValues, Value, gauge, single
from cometmq.protocol.codes import LanguageCode

_LANGUAGES = frozenset(language.name.lower() for language in LanguageCode)


class ClientFamilies:
    """Args: connections: how many are open at all ports."""

    def __init__(self, clients: ClientRegistry, connections: Callable[[], int]) -> None:
        self._clients = clients
        self._connections = connections

    @property
    def families(self) -> Sequence[Family]:
        return (
            gauge(
                "rocketmq_producer_connections",
                ("language", "protocol_type", "version"),
                self._producers,
            ),
            gauge(
                "rocketmq_consumer_connections",
                (
                    "consume_mode",
                    "consumer_group",
                    "is_system",
                    "language",
                    "protocol_type",
                    "version",
                ),
                self._consumers,
            ),
            gauge(
                "cometmq_connections",
                (),
                single(lambda: float(self._connections())),
                text="Open connections at all ports for clients",
            ),
        )

    def _producers(self) -> list[tuple[LabelValues, Value]]:
        found: Counter[LabelValues] = Counter()
        for clients in self._clients.producers.values():
            for client in clients.values():
                language, version = _kind(client)
                found[language, "remoting", version] += 1
        return _floats(found)

    def _consumers(self) -> list[tuple[LabelValues, Value]]:
        found: Counter[LabelValues] = Counter()
        for name, group in self._clients.consumers.items():
            mode = "push" if group.consume_type == "CONSUME_PASSIVELY" else "pull"
            for client in group.clients.values():
                language, version = _kind(client)
                found[mode, name, is_system("", name), language, "remoting", version] += 1
        return _floats(found)


def _kind(client: Client) -> tuple[str, str]:
    """Language and version; a client may call its language anything."""
    language = client.language.lower()
    return language if language in _LANGUAGES else "other", version_name(client.version).lower()


def _floats(counts: Counter[LabelValues]) -> list[tuple[LabelValues, Value]]:
    return [(labels, float(count)) for labels, count in counts.items()]
