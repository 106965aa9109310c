"""A running RocketMQ cluster is brought over to ours without a stop, and back: docs/howto/moving-from-rocketmq.md.

Java's producer and consumer go on all the time. Whatever was acknowledged is consumed in the end, and a group that is
offline finds its positions with each master.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.eventually import wait_until

from .java import MissingComponent
from .moved_clients import MovedClients, group_of, moved_clients
from .replication_group import (
    FOLLOW_SECONDS_MAX,
    MASTER,
    QUEUES,
    SLAVE,
    SYNC_MASTER,
    TOPIC,
    Group,
    change_setting,
    commit,
    group_in,
    has_followers,
    make_group,
    make_topic,
    position,
    wait_for_equal_logs,
)
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, Broker, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3
OFFLINE_GROUP = "moved-offline"
# A slave of RocketMQ 5 asks for its master's tables a minute after its start.
TABLES_SECONDS_MAX = 120.0


@pytest.mark.parametrize(("theirs", "client"), [(ROCKETMQ_4, "4.9.8"), (ROCKETMQ_5, "5.5.0")])
def test_a_cluster_moves_to_ours_and_back(theirs: str, client: str, tmp_path: Path) -> None:
    try:
        makes = {make: commands_of(make, tmp_path / f"home-{make}") for make in (OURS, theirs)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    with group_in(tmp_path, makes, theirs) as group:
        old = group.start(group.broker(0, MASTER), theirs)
        make_topic(old)
        make_group(old, OFFLINE_GROUP)
        for queue_id in range(QUEUES):
            commit(old, OFFLINE_GROUP, queue_id, queue_id + 1)
        address = group.name_server.address
        with moved_clients(client, address, tmp_path / "client", pause_ms=5) as clients:
            clients.sends_on()
            new = group.start(group.broker(1, SLAVE), OURS)
            _move_in(old, new, clients, client, theirs)
            _becomes_a_slave(group, old, new, clients, theirs)
            _move_back(group, old, new, clients, theirs)
            clients.be_quiet()
            clients.drain()
        _has_offline_positions(old)
        # And ours may follow again, with the store that it has.
        new.settings["brokerRole"] = SLAVE
        group.start(new, OURS)
        wait_for_equal_logs(old, new)


def _move_in(old: Broker, new: Broker, clients: MovedClients, client: str, theirs: str) -> None:
    """Our slave has everything; sends wait for it; the old master stops; ours is promoted."""
    wait_until(lambda: _tables_are_there(new, client), "groups at our slave", FOLLOW_SECONDS_MAX)
    if theirs == ROCKETMQ_5:
        change_setting(old, "inSyncReplicas", 2)
    change_setting(old, "brokerRole", SYNC_MASTER)
    clients.sends_on()
    old.stop()
    change_setting(new, "brokerRole", MASTER)
    clients.sends_on()
    clients.takes_on()
    _has_offline_positions(new)


def _becomes_a_slave(
    group: Group, old: Broker, new: Broker, clients: MovedClients, theirs: str
) -> None:
    """The RocketMQ broker copies our master from the start."""
    shutil.move(old.store, old.directory / "store-before-the-move")
    old.settings.update(brokerRole=SLAVE, brokerId=1)
    group.start(old, theirs)
    wait_until(lambda: has_followers(new), "the slave follows", FOLLOW_SECONDS_MAX)
    clients.sends_on()
    wait_until(lambda: _has_tables(old), "tables of the slave", TABLES_SECONDS_MAX)


def _move_back(group: Group, old: Broker, new: Broker, clients: MovedClients, theirs: str) -> None:
    """Sends wait for the RocketMQ broker; ours stops; it starts again as the master, on the store that it copied."""
    change_setting(new, "brokerRole", SYNC_MASTER)
    clients.sends_on()
    new.stop()
    old.stop()
    old.settings.update(brokerRole=MASTER, brokerId=0)
    group.start(old, theirs)
    clients.sends_on()
    clients.takes_on()


def _tables_are_there(new: Broker, client: str) -> bool:
    return position(new, OFFLINE_GROUP, 0) is not None and bool(position(new, group_of(client), 0))


def _has_tables(slave: Broker) -> bool:
    """Whether a RocketMQ slave has taken over topics, groups and positions of our master."""
    names = {
        "topics.json": TOPIC,
        "subscriptionGroup.json": OFFLINE_GROUP,
        "consumerOffset.json": OFFLINE_GROUP,
    }
    files = {name: slave.store / "config" / name for name in names}
    return all(file.exists() and names[name] in file.read_text() for name, file in files.items())


def _has_offline_positions(broker: Broker) -> None:
    found = [position(broker, OFFLINE_GROUP, queue_id) for queue_id in range(QUEUES)]
    assert found == [queue_id + 1 for queue_id in range(QUEUES)]
