"""Controllers: who leads, which replicas are in sync, elections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.ha.replication import INTERVAL
from cometmq.cli.mqadmin.options import flag, needed, value
from cometmq.cli.mqadmin.servers.settings import KEY, VALUE, show_settings
from cometmq.cli.mqadmin.texts import java

if TYPE_CHECKING:
    from cometmq.protocol.bodies.ha import ReplicaIdentity

CONTROLLERS: Final = needed(
    "a", "controllerAddress", "controllers, like '10.0.0.1:9878;10.0.0.2:9878'"
)


async def sync_states(call: Call) -> None:
    name, cluster = call.args.text("b"), call.args.text("c")
    if not name and not cluster:
        raise UsageError("expected a broker's name (-b) or a cluster (-c)")
    states = await call.admin.controllers.sync_states([name] if name else (), cluster=cluster)
    for broker, state in states.items():
        call.out.line()
        call.out.line(f"#brokerName\t{broker}")
        call.out.line(f"#MasterBrokerId\t{java(state.master_broker_id)}")
        call.out.line(f"#MasterAddr\t{java(state.master_address)}")
        call.out.line(f"#MasterEpoch\t{state.master_epoch}")
        call.out.line(f"#SyncStateSetEpoch\t{state.sync_state_set_epoch}")
        call.out.line(f"#SyncStateSetNums\t{len(state.in_sync_replicas)}")
        _show_replicas(call, "InSyncReplica", state.in_sync_replicas)
        _show_replicas(call, "NotInSyncReplica", state.not_in_sync_replicas)
    call.out.value(states)


def _show_replicas(call: Call, title: str, replicas: Sequence[ReplicaIdentity]) -> None:
    for one in replicas:
        call.out.line()
        call.out.line(
            f"{title}:\tReplicaIdentity{{brokerName='{one.broker_name}', brokerId={one.broker_id}, "
            f"brokerAddress='{one.broker_address}', alive={java(one.alive)}}}"
        )


async def controller_metadata(call: Call) -> None:
    answers = await call.admin.controllers.metadata()
    told = next(iter(answers.values()), None)
    if told is not None:
        call.out.line()
        call.out.line(f"#ControllerGroup\t{told.group}")
        call.out.line(f"#ControllerLeaderId\t{java(told.controller_leader_id)}")
        call.out.line(f"#ControllerLeaderAddress\t{java(told.controller_leader_address)}")
        for peer in filter(None, told.peers.split(";")):
            call.out.line(f"#Peer:\t{peer}")
    call.out.failures(answers.failed)
    call.out.value(answers.done)


async def controller_settings(call: Call) -> None:
    answers = await call.admin.controllers.settings()
    for address, settings in answers.done.items():
        show_settings(call, address, settings)
    call.out.failures(answers.failed)
    call.out.value(answers.done)


async def update_controller_settings(call: Call) -> None:
    key, text = call.args.needed("k"), call.args.raw("v") or ""
    answers = await call.admin.controllers.update_settings({key: text})
    if answers.done:
        call.out.line(f"update controller config success![{', '.join(answers.done)}]")
        call.out.line(f"{key} : {text}")
    for remark in filter(None, answers.values()):
        call.out.line(remark)
    call.out.failures(answers.failed)
    call.out.value({"done": answers.done, "key": key, "value": text})


async def elect_master(call: Call) -> None:
    args = call.args
    cluster, name = args.needed("c"), args.needed("bn")
    elected = await call.admin.controllers.elect(cluster, name, args.number("b", 0))
    master = elected.master
    call.out.line()
    call.out.line(f"#ClusterName\t{cluster}")
    call.out.line(f"#BrokerName\t{name}")
    call.out.line(f"#BrokerMasterAddr\t{java(master.master_address)}")
    call.out.line(f"#MasterEpoch\t{java(master.master_epoch)}")
    call.out.line(f"#SyncStateSetEpoch\t{java(master.sync_state_set_epoch)}")
    for number, address in elected.members.items():
        call.out.line(f"\t#Broker\t{number}\t{address}")
    call.out.value(elected)


async def clean_broker(call: Call) -> None:
    args = call.args
    name = args.needed("bn")
    await call.admin.controllers.clean_broker(
        name,
        cluster=args.text("c"),
        broker_ids=_ids(args.text("b", "")),
        with_living="l" in args,
    )
    call.out.line(f"clear broker {name} metadata from controller success! ")
    call.out.value({"broker": name})


def _ids(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"expected ids like 1;2 for the option -b, got {text!r}")
    return [int(part) for part in parts]


def _clean_text(args: Arguments) -> str:
    which = f"brokers {args.text('b')}" if args.text("b") else "all brokers"
    living = ", those that are alive, too" if "l" in args else ""
    return f"have controllers forget {which} of {args.text('bn')}{living}"


COMMANDS: Final = (
    Command(
        name="getSyncStateSet",
        summary="Show the master of brokers, and which replicas are in sync.",
        run=sync_states,
        options=(
            CONTROLLERS,
            value("b", "brokerName", "name of a broker"),
            value("c", "clusterName", "all brokers of this cluster"),
            INTERVAL,
        ),
        interval="i",
        can_watch=True,
        asks_controllers=True,
        examples=("getSyncStateSet -a 127.0.0.1:9878 -b broker-a",),
    ),
    Command(
        name="getControllerMetaData",
        summary="Show which controller leads, and the others.",
        run=controller_metadata,
        options=(CONTROLLERS,),
        can_watch=True,
        asks_controllers=True,
        examples=("getControllerMetaData -a 127.0.0.1:9878",),
    ),
    Command(
        name="getControllerConfig",
        summary="Show the settings of controllers.",
        run=controller_settings,
        options=(CONTROLLERS,),
        asks_controllers=True,
        examples=("getControllerConfig -a 127.0.0.1:9878",),
    ),
    Command(
        name="updateControllerConfig",
        summary="Change a setting of controllers.",
        run=update_controller_settings,
        options=(CONTROLLERS, KEY, VALUE),
        asks_controllers=True,
        examples=(
            "updateControllerConfig -a 127.0.0.1:9878 -k scanNotActiveBrokerInterval -v 4000",
        ),
    ),
    Command(
        name="electMaster",
        summary="Make a broker the master of its group.",
        run=elect_master,
        options=(
            CONTROLLERS,
            needed("b", "brokerId", "its permanent id, which getSyncStateSet shows"),
            needed("bn", "brokerName", "name of the broker"),
            needed("c", "clusterName", "the cluster"),
        ),
        confirm=lambda args: f"make broker {args.text('b')} of {args.text('bn')} the master",
        asks_controllers=True,
        examples=("electMaster -a 127.0.0.1:9878 -c DefaultCluster -bn broker-a -b 2",),
    ),
    Command(
        name="cleanBrokerMetadata",
        summary="Have controllers forget brokers that are gone for good.",
        run=clean_broker,
        options=(
            CONTROLLERS,
            value("b", "brokerControllerIdsToClean", "permanent ids, like 1;2; without it, all"),
            needed("bn", "brokerName", "name of the broker"),
            value("c", "clusterName", "the cluster; needed without -l"),
            flag("l", "cleanLivingBroker", "those that are alive, too"),
        ),
        confirm=_clean_text,
        asks_controllers=True,
        examples=("cleanBrokerMetadata -a 127.0.0.1:9878 -c DefaultCluster -bn broker-a -b 3",),
    ),
)
