"""Options as the tables of subcommands write them, and those that every subcommand has."""

from __future__ import annotations

from typing import Final

from cometmq.cli.mqadmin.command import Option


def needed(letter: str, name: str, help: str) -> Option:
    """An option with a value, without which the subcommand does not run."""
    return Option(letter, name, help, is_required=True)


def value(letter: str, name: str, help: str) -> Option:
    """An option with a value."""
    return Option(letter, name, help)


def flag(letter: str, name: str, help: str) -> Option:
    """An option without a value."""
    return Option(letter, name, help, takes_value=False)


TOPIC: Final = needed("t", "topic", "the topic")
BROKER: Final = value("b", "brokerAddr", "address of one broker, like 10.0.0.1:10911")
CLUSTER: Final = value("c", "clusterName", "all brokers of this cluster")
ROUTE_CLUSTER: Final = value("c", "cluster", "only for RocketMQ's lite topics; has no meaning here")
EITHER: Final = (("b", "c"),)

EVERYWHERE: Final = (
    flag("h", "help", "show this text"),
    value("n", "namesrvAddr", "name servers, like '10.0.0.1:9876;10.0.0.2:9876'"),
)
"""RocketMQ's options of every subcommand."""

OWN: Final = (
    flag("", "json", "print one JSON document for programs instead of text"),
    value("", "watch", "repeat every so many seconds until Ctrl-C"),
    flag("", "yes", "do not ask; for scripts"),
    value(
        "", "config", "file with account and TLS, from `cometmq init` (or: COMETMQ_CLIENT_CONFIG)"
    ),
    value("", "color", "auto, always or never (or: NO_COLOR)"),
    flag("", "rocketmq-exit-codes", "0 for a command that failed, too, as RocketMQ's"),
)
"""Options of every subcommand that RocketMQ's tool does not have."""
