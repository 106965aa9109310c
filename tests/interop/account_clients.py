"""Clients that are not ours try what accounts may do, at our broker and at RocketMQ's: many attempts in a process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .account_attempts import (
    GO_OPERATIONS,
    JAVA_OPERATIONS,
    NODE_OPERATIONS,
    Attempt,
    Surprises,
    offered,
    surprises_of,
)
from .account_servers import Guarded, GuardedBroker
from .features import GO, HEADER_ENCODINGS, NODE, java_client
from .java import fetch_jars
from .programs import Program, go_program, node_program
from .servers import HERE
from .single_java import SingleJava
from .systems import OURS, ROCKETMQ_4

RUN_SECONDS_MAX = 240

_NEWER = "5.5.0"


class ClientRuns:
    """Each client's attempts at both brokers, made when somebody asks for them.

    Args:
        directory: for what the clients write.
    """

    def __init__(self, guarded: Guarded, attempts: Sequence[Attempt], directory: Path) -> None:
        self._guarded = guarded
        self._attempts = attempts
        self._directory = directory
        self._found: dict[str, Surprises] = {}

    def surprises(self, client: str) -> Surprises:
        """What was not as expected. Raises MissingComponent."""
        if client not in self._found:
            if client in (GO, NODE):
                self._found[client] = self._of_program(client)
            else:
                self._found.update(self._of_java(client.split()[1].rstrip(",")))
        return self._found[client]

    def _of_program(self, client: str) -> Surprises:
        make_program, operations = {
            GO: (go_program, GO_OPERATIONS),
            NODE: (node_program, NODE_OPERATIONS),
        }[client]
        name = client.split()[0].lower()
        program = make_program(HERE / name, self._directory / name)
        # Go's client does not sign the token that it sends; Node's has none.
        chosen = [one for one in offered(self._attempts, operations) if not one.account.token]
        return surprises_of(
            (broker.make, attempt, outcome)
            for broker in self._guarded.values()
            for attempt, outcome in zip(chosen, _outcomes(program, broker, chosen), strict=True)
        )

    def _of_java(self, version: str) -> dict[str, Surprises]:
        """For both encodings of headers, in one process."""
        program = SingleJava("AccountAttempts", fetch_jars(HERE / "pom.xml", version))
        tried = [
            (encoding, broker, attempt)
            for encoding in HEADER_ENCODINGS
            for broker in self._guarded.values()
            for attempt in offered(self._attempts, JAVA_OPERATIONS)
            if not _is_misfit(version, encoding, broker.make, attempt.operation)
        ]
        text = "".join(_java_line(*one) for one in tried)
        home = self._directory / f"java-{version}"
        output = program.run(home, [], text=text, seconds_max=RUN_SECONDS_MAX)
        found = list(zip(tried, output.splitlines(), strict=True))
        return {
            java_client(version, encoding): surprises_of(
                (broker.make, attempt, outcome)
                for (used, broker, attempt), outcome in found
                if used == encoding
            )
            for encoding in HEADER_ENCODINGS
        }


def _is_misfit(version: str, encoding: str, make: str, operation: str) -> bool:
    """Whether RocketMQ's client and RocketMQ's broker do not understand each other, whatever the account."""
    if version != _NEWER or make == OURS:
        return False
    if operation == "create-topic":
        # The client sends a field without a value. In this encoding the broker reads null, and looks for that word in
        # what was signed.
        return encoding == "ROCKETMQ"
    return make == ROCKETMQ_4 and operation in ("topic-stats", "consume-stats")


def _outcomes(program: Program, broker: GuardedBroker, attempts: list[Attempt]) -> list[str]:
    words = ["|".join((one.operation, *one.account[:2], one.topic, one.group)) for one in attempts]
    arguments = ["attempts", broker.name_server.address, broker.address, "attempts", *words]
    running = program.start(broker.make, arguments)
    assert running.wait(RUN_SECONDS_MAX), running.errors()
    assert running.process.returncode == 0, running.errors()
    return running.lines()


def _java_line(encoding: str, broker: GuardedBroker, attempt: Attempt) -> str:
    words = (
        *(broker.name_server.address, broker.address, encoding, attempt.operation),
        *(*attempt.account, attempt.topic, attempt.group),
    )
    return "\t".join(words) + "\n"
