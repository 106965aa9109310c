"""A sink that writes every row once goes on when its master is replaced: nothing twice, nothing left out."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from tests.integration.test_sink_writer import batches, expected, options, stored, write

from cometmq.testing.cluster import Cluster, cluster

ROWS = 200


def replace_master(servers: Cluster) -> None:
    (lost,) = servers.masters
    servers.run(servers.kill(lost))
    servers.run(servers.start(lost))


@pytest.mark.parametrize("has_controller", [False, True])
def test_a_repeated_batch_is_known_to_the_next_master(has_controller: bool) -> None:
    with cluster(slaves=1, controller=has_controller) as servers:
        settings = options(servers.name_servers)

        def change() -> None:
            servers.run(servers.promote(servers.slaves[0]))

        assert write(settings, batches(0, ROWS)) == (ROWS, 0)
        change()
        # The task is repeated: everything is stored already.
        assert write(settings, batches(0, ROWS)) == (0, ROWS)
        assert write(settings, batches(0, ROWS), batch=1) == (ROWS, 0)
        # Back at the first one, which has not seen batch 1 as a master.
        change()
        assert write(settings, batches(0, ROWS), batch=1) == (0, ROWS)
        assert write(settings, batches(0, ROWS), batch=2) == (ROWS, 0)
        change()
        assert write(settings, batches(0, ROWS), batch=2) == (0, ROWS)
        found = stored(servers.masters[0].address)
        assert found == expected(ROWS) + expected(ROWS) + expected(ROWS)


def test_a_batch_goes_on_at_the_next_master_when_one_is_lost() -> None:
    with cluster(slaves=1, controller=True) as servers:
        settings = options(servers.name_servers)
        assert write(settings, batches(0, ROWS // 2)) == (ROWS // 2, 0)
        replace_master(servers)
        written, left_out = write(settings, batches(0, ROWS))
        assert (written, left_out) == (ROWS - ROWS // 2, ROWS // 2)
        assert stored(servers.masters[0].address) == expected(ROWS)
