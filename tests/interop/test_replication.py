"""Masters and slaves of different makes: equal files, and sends that wait for a slave of another make."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eventually import wait_until

from cometmq.protocol.codes import ResponseCode

from .java import MissingComponent
from .moved_clients import group_of, moved_clients
from .replication_group import (
    FOLLOW_SECONDS_MAX,
    MASTER,
    QUEUES,
    SLAVE,
    SYNC_MASTER,
    Group,
    ends,
    group_in,
    has_followers,
    log_of,
    make_topic,
    position,
    read,
    send,
    wait_for_equal_stores,
)
from .servers import ServerCommands
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, THEIRS, Broker, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

EXIT_CODE_MISSING = 3


@pytest.fixture(scope="module")
def makes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServerCommands]:
    home = tmp_path_factory.mktemp("homes")
    try:
        return {make: commands_of(make, home / make) for make in (OURS, *THEIRS)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


@pytest.fixture
def group(makes: dict[str, ServerCommands], tmp_path: Path) -> Iterator[Group]:
    with group_in(tmp_path, makes) as group:
        yield group


@pytest.mark.parametrize("theirs", THEIRS)
def test_their_slave_follows_our_master(group: Group, theirs: str) -> None:
    master = group.start(group.broker(0, SYNC_MASTER), OURS)
    make_topic(master)
    assert set(send(master, 100, "alone")) == {ResponseCode.SLAVE_NOT_AVAILABLE}
    slave = group.start(group.broker(1, SLAVE), theirs)
    wait_until(lambda: has_followers(master), "the slave follows", FOLLOW_SECONDS_MAX)
    assert set(send(master, 300, "together")) == {ResponseCode.SUCCESS}
    wait_for_equal_stores(master, slave)
    assert len(log_of(master)) > 1
    assert ends(slave) == ends(master) == (0, 400)
    if theirs == ROCKETMQ_5:
        # It asks for its master's topics a minute after its start, and would refuse to be read until then.
        make_topic(slave)
    wait_until(lambda: len(read(slave)) == ends(master)[1], "the slave is read", FOLLOW_SECONDS_MAX)
    assert read(slave) == read(master)


@pytest.mark.parametrize("theirs", THEIRS)
def test_our_slave_follows_their_master(group: Group, theirs: str) -> None:
    # 5.5.0 waits for nobody unless it is told how many copies there should be.
    settings = {ROCKETMQ_4: {}, ROCKETMQ_5: {"inSyncReplicas": 2, "slaveTimeout": 500}}[theirs]
    without_slave = {
        ROCKETMQ_4: ResponseCode.SLAVE_NOT_AVAILABLE,
        ROCKETMQ_5: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }[theirs]
    master = group.start(group.broker(0, SYNC_MASTER, **settings), theirs)
    make_topic(master)
    assert set(send(master, 100, "alone", in_flight=100)) == {without_slave}
    slave = group.start(group.broker(1, SLAVE), OURS)
    wait_until(
        lambda: send(master, 1, "probe") == [ResponseCode.SUCCESS],
        "a send is confirmed by our slave",
        FOLLOW_SECONDS_MAX,
    )
    assert set(send(master, 300, "together")) == {ResponseCode.SUCCESS}
    wait_for_equal_stores(master, slave)
    assert len(log_of(master)) > 1
    wait_until(lambda: len(read(slave)) == ends(master)[1], "the slave is read", FOLLOW_SECONDS_MAX)
    assert read(slave) == read(master)
    assert ends(slave) == ends(master)


@pytest.mark.parametrize(
    ("make", "versions"),
    [(OURS, ("4.9.8", "5.5.0")), (ROCKETMQ_4, ("4.9.8",)), (ROCKETMQ_5, ("5.5.0",))],
)
def test_java_clients_read_from_our_slave_when_the_master_is_killed(
    group: Group, make: str, versions: tuple[str, ...], tmp_path: Path
) -> None:
    settings = {"inSyncReplicas": 2} if make == ROCKETMQ_5 else {}
    master = group.start(group.broker(0, SYNC_MASTER, **settings), make)
    make_topic(master)
    slave = group.start(group.broker(1, SLAVE), OURS)
    with contextlib.ExitStack() as stack:
        everybody = [
            stack.enter_context(
                moved_clients(
                    version, group.name_server.address, tmp_path / f"client-{version}", pause_ms=50
                )
            )
            for version in versions
        ]
        for clients in everybody:
            clients.sends_on()
            clients.takes_on()
        wait_until(lambda: knows_groups(slave, versions), "the groups", FOLLOW_SECONDS_MAX)
        for clients in everybody:
            clients.falls_behind()
        master.kill()
        for clients in everybody:
            clients.be_quiet()
            clients.drain()
    for version in versions:
        for queue_id in range(QUEUES):
            assert position(slave, group_of(version), queue_id) == ends(slave, queue_id)[1]


def knows_groups(slave: Broker, versions: tuple[str, ...]) -> bool:
    return all(position(slave, group_of(version), 0) is not None for version in versions)


def test_our_slave_goes_on_behind_copied_files(group: Group) -> None:
    """A RocketMQ master gives an empty slave its last file only, so somebody copies the others."""
    master = group.start(group.broker(0, MASTER), ROCKETMQ_4)
    make_topic(master)
    assert set(send(master, 600, "early")) == {ResponseCode.SUCCESS}
    slave = group.broker(1, SLAVE)
    (slave.store / "commitlog").mkdir(parents=True)
    # The last one is in use, and RocketMQ prepares one more.
    files = sorted((master.store / "commitlog").iterdir())[:-2]
    assert len(files) > 1
    for file in files:
        shutil.copy(file, slave.store / "commitlog")
    group.start(slave, OURS)
    assert set(send(master, 100, "late")) == {ResponseCode.SUCCESS}
    wait_for_equal_stores(master, slave)
    wait_until(lambda: len(read(slave)) == 700, "the slave is read", FOLLOW_SECONDS_MAX)
