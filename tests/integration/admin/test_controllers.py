"""Controllers and replication, at a master with a slave under a controller."""

from __future__ import annotations

import pytest
from tests.eventually import eventually

from cometmq.admin import Admin, NoSuchName, PartialFailure, Target
from cometmq.base.errors import UsageError
from cometmq.protocol.reply_errors import BrokerReplyError
from cometmq.testing import cluster


async def test_who_leads_and_who_follows() -> None:
    async with cluster(slaves=1, controller=True) as servers:
        controller = str(servers.servers.controller_address)
        async with Admin(servers.name_servers, controllers=controller, timeout=5) as admin:
            assert await admin.controllers.leader() == controller
            [told] = (await admin.controllers.metadata()).values()
            assert told.is_leader
            [place] = await admin.brokers.places()
            states = await admin.controllers.sync_states()
            info = states[place.broker_name]
            assert info.master_address == place.address
            assert len(info.in_sync_replicas) == 2

            [status] = (await admin.replication.status()).values()
            assert (status.master, len(status.ha_connection_info)) == (True, 1)
            epochs = (await admin.replication.epochs()).raise_failed()
            assert len(epochs.done) == 2
            assert [one.epoch for one in epochs.done[place.address].epoch_list] == [1]

            assert "controllerStorePath" in (await admin.controllers.settings()).values()[0]
            with pytest.raises(UsageError, match="expected settings such as"):
                await admin.controllers.update_settings({})

            slave = next(
                one for one in info.in_sync_replicas if one.broker_id != info.master_broker_id
            )
            elected = await admin.controllers.elect(
                place.cluster, place.broker_name, slave.broker_id
            )
            assert elected.master.master_broker_id == slave.broker_id
            assert len(elected.members) == 2

            async def leads() -> bool:
                try:
                    [leader] = await admin.brokers.places()
                except NoSuchName:
                    # A broker whose role changes leaves the name server and comes again.
                    return False
                return leader.address == slave.broker_address

            await eventually(leads, "name servers know the new master")
            with pytest.raises(BrokerReplyError):
                await admin.controllers.clean_broker(place.broker_name, cluster=place.cluster)


async def test_controllers_that_are_not_given_or_do_not_answer() -> None:
    async with cluster() as servers:
        async with Admin(servers.name_servers) as admin:
            with pytest.raises(UsageError, match=r"expected addresses as Admin\(controllers=...\)"):
                await admin.controllers.leader()
        async with Admin(servers.name_servers, controllers="127.0.0.1:1") as admin:
            with pytest.raises(PartialFailure, match="asking for the leading controller failed"):
                await admin.controllers.leader()
            with pytest.raises(NoSuchName, match="no cluster 'nowhere'"):
                await admin.controllers.sync_states(cluster="nowhere")
        # Without a controller a broker has no epochs.
        async with Admin(servers.name_servers) as admin:
            assert (await admin.replication.epochs(Target())).failed
