"""What accounts cost a send: the signature, the decision, and both as the guard before the processors takes them.
And what a limit of requests per second costs.

    python -m benchmarks.access

The least of many short rounds counts, because the others were disturbed by somebody.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, cast

from benchmarks.broker_send import TOPIC, send_request
from benchmarks.steps import best

from cometmq.access.accounts.account import (
    Accounts,
    Acl,
    Decision,
    Entry,
    PolicyType,
    User,
)
from cometmq.access.accounts.account_judge import AccountJudge
from cometmq.access.accounts.resource import Resource
from cometmq.access.door.access_guard import AccessGuard
from cometmq.access.identity import Judge
from cometmq.access.plain.plain_account import PlainTable, parse_account
from cometmq.access.plain.plain_judge import PlainJudge
from cometmq.access.rules.need import Action, Kind
from cometmq.access.rules.request_rules import RULES
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import Verifier, sign
from cometmq.remoting.bounds.rates import RateLimits
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection
from cometmq.remoting.remoting_config import RemotingServerConfig
from cometmq.testing.fake_connection import FakeConnection

NAME, SECRET = "bench-account", "a secret of some length"
COUNT = 2000
RESULT = Path(__file__).parent / "results" / "access.json"


def main() -> None:
    command = send_request(1)
    sign(command, NAME, SECRET)
    steps: dict[str, float] = {}
    verifier = Verifier(SECRET)
    assert verifier.is_signed(command)
    steps["signature of one send"] = best(lambda n: verifier.is_signed(command), COUNT)
    for name, judge in (("ACL 1", plain_judge()), ("ACL 2", account_judge())):
        steps[f"{name}: a new decision"] = best(decides(judge, command), COUNT)
        steps[f"{name}: guard, decided before"] = best(passes(judge, command), COUNT)
        steps[f"{name}: guard without the signature"] = (
            steps[f"{name}: guard, decided before"] - steps["signature of one send"]
        )
    steps["requests per second: limited"] = best(limited(command), COUNT)
    width = max(map(len, steps))
    for name, microseconds in steps.items():
        print(f"{name:<{width}} {microseconds:7.2f} us")
    RESULT.write_text(json.dumps(steps, indent=2) + "\n")
    print(f"written: {RESULT.relative_to(Path.cwd())}", file=sys.stderr)


def plain_judge() -> PlainJudge:
    account = parse_account(
        {"accessKey": NAME, "secretKey": SECRET, "topicPerms": [f"{TOPIC}=PUB"]}
    )
    return PlainJudge(PlainTable({NAME: account}), RULES)


def account_judge() -> AccountJudge:
    entry = Entry(
        resource=Resource(Kind.TOPIC, TOPIC), actions=(Action.PUB,), decision=Decision.ALLOW
    )
    acl = Acl({PolicyType.CUSTOM: (entry,)})
    return AccountJudge(Accounts({NAME: User(NAME, SECRET)}, {NAME: acl}), RULES, cluster="C")


def decides(judge: Judge, command: Command) -> Any:
    identity = judge.identify("127.0.0.1", command)
    return lambda n: judge.permit(identity, "127.0.0.1", command)


def passes(judge: Judge, command: Command) -> Any:
    guard = AccessGuard(judge).guard
    connection = cast(Connection, FakeConnection())
    assert guard(connection, command) is None
    return lambda n: guard(connection, command)


def limited(command: Command) -> Any:
    config = RemotingServerConfig(
        requests_per_second_max=1_000_000_000, bytes_per_second_max=1_000_000_000_000
    )
    guard = RateLimits(config, Reached(), time.monotonic).guard
    connection = cast(Connection, FakeConnection())
    return lambda n: guard(connection, command)


if __name__ == "__main__":
    main()
