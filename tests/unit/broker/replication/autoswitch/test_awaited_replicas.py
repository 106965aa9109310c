"""Copies under a controller: all that may be elected, and as many as set."""

from __future__ import annotations

from cometmq.broker.replication.ha_wire import SlaveIdentity
from cometmq.broker.replication.replicas import EVERYTHING, Outlook, Replicas
from cometmq.broker.replication.replication_config import ReplicationConfig


def _slave(broker_id: int, *, is_learner: bool = False) -> SlaveIdentity:
    return SlaveIdentity(broker_id, is_learner=is_learner, from_last_file=False)


def _with(awaited: set[int], **ends: int) -> Replicas:
    replicas = Replicas(100)
    replicas.awaited = frozenset(awaited)
    for name, end in ends.items():
        replicas.identified(name, name, end, _slave(int(name[1:])))
    return replicas


def test_a_master_alone_in_its_set_waits_for_nobody() -> None:
    replicas = _with(set())
    config = ReplicationConfig()
    assert replicas.needed(config, 50) == 1
    assert replicas.outlook(1, 50) is Outlook.WAIT
    assert replicas.copied_to(1) == EVERYTHING


def test_all_that_may_be_elected_must_have_a_record() -> None:
    replicas = _with({2, 3}, s2=50, s3=40, s4=60)
    assert replicas.needed(ReplicationConfig(), 50) == 3
    assert replicas.copied_to(3) == 40
    replicas.left("s3")
    assert replicas.copied_to(3) is None
    assert replicas.outlook(3, 50) is Outlook.WAIT, "it comes back, or the controller lets it go"
    assert replicas.following(50) == 1


def test_more_copies_than_the_set_has() -> None:
    config = ReplicationConfig(copies=3)
    replicas = _with({2}, s2=50)
    assert replicas.needed(config, 50) == 3
    assert replicas.outlook(3, 50) is Outlook.NOT_AVAILABLE
    replicas.identified("s3", "s3", 40, _slave(3))
    assert replicas.outlook(3, 50) is Outlook.WAIT
    assert replicas.copied_to(3) == 40


def test_learners_do_not_count() -> None:
    replicas = _with({2}, s2=50)
    replicas.identified("s9", "s9", 90, _slave(9, is_learner=True))
    assert replicas.log_ends == {2: 50}
    assert replicas.outlook(3, 50) is Outlook.NOT_AVAILABLE


def test_a_new_connection_of_a_slave_takes_the_place_of_the_old_one() -> None:
    replicas = _with({2}, s2=50)
    replicas.identified("again", "again", 45, _slave(2))
    assert replicas.log_ends == {2: 45}
    assert "s2" not in replicas
