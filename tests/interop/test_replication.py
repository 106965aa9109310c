"""Masters and slaves of different makes: equal files, and sends that wait for a slave of another make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eventually import wait_until

from cometmq.protocol.codes import ResponseCode

from .java import MissingComponent
from .replication_group import (
    FOLLOW_SECONDS_MAX,
    SLAVE,
    SYNC_MASTER,
    Group,
    ends,
    group_in,
    has_followers,
    log_of,
    make_topic,
    read,
    send,
    wait_for_equal_stores,
)
from .servers import ServerCommands
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, THEIRS, commands_of

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
    assert ends(slave) == ends(master) == ("0", "400")
    if theirs == ROCKETMQ_5:
        # It asks for its master's topics a minute after its start, and would refuse to be read until then.
        make_topic(slave)
    wait_until(lambda: read(slave) == read(master), "the slave can be read", FOLLOW_SECONDS_MAX)


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
    wait_until(lambda: read(slave) == read(master), "the slave can be read", FOLLOW_SECONDS_MAX)
    assert ends(slave) == ends(master)
