"""Our name server, a master and its slave as processes, and what they tell of their stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.servers import ServerCommands, ask, cometmq_commands
from tests.interop.systems import Broker, NameServer

from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.codes import RequestCode


@dataclass(frozen=True, slots=True)
class Pair:
    """Master and slave are not started yet."""

    name_server: NameServer
    master: Broker
    slave: Broker
    commands: ServerCommands


@contextmanager
def replica_pair(directory: Path, *, master_role: str, **settings: object) -> Iterator[Pair]:
    commands = cometmq_commands()
    with NameServer(commands, directory / "namesrv").running() as name_server:
        master = Broker(
            [name_server], directory / "master", "bench", brokerRole=master_role, **settings
        )
        slave = Broker(
            [name_server], directory / "slave", "bench", brokerRole="SLAVE", brokerId=1, **settings
        )
        try:
            yield Pair(name_server, master, slave, commands)
        finally:
            slave.kill()
            master.kill()


@dataclass(frozen=True, slots=True)
class Progress:
    """What a broker tells of its store; nothing when it does not answer."""

    log_end: int = 0
    queues_end: int = 0

    @classmethod
    def of(cls, broker: Broker) -> Progress:
        try:
            code, body = ask(broker.port, RequestCode.GET_BROKER_RUNTIME_INFO, {})
        except OSError:
            return cls()
        assert code == 0, code
        table = KVTable.decode(body).table
        end = int(table["commitLogMaxOffset"])
        return cls(end, end - int(table["dispatchBehindBytes"]))


def make_topic(broker: Broker, topic: str, queues: int) -> None:
    fields = {"topic": topic, "defaultTopic": "TBW102", "perm": "6", "topicSysFlag": "0"}
    fields |= {"readQueueNums": str(queues), "writeQueueNums": str(queues), "order": "false"}
    fields["topicFilterType"] = "SINGLE_TAG"
    code, body = ask(broker.port, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    assert code == 0, (code, body)
