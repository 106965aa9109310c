"""How far slaves are, and under which masters a log was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, value
from cometmq.cli.mqadmin.texts import time_text

if TYPE_CHECKING:
    from cometmq.protocol.bodies.ha import HaStatus

SLAVES: Final = Layout(
    (
        *("#SlaveAddr", "#SlaveAckOffset", "#Diff", "#TransferSpeed(KB/s)"),
        *("#Status", "#TransferFromWhere"),
    ),
    "%-32s  %-16s %16s %16s %16s %16s",
)
INTERVAL: Final = value("i", "interval", "repeat every so many seconds, as --watch")


async def ha_status(call: Call) -> None:
    answers = await call.admin.replication.status(call.target())
    for address, status in answers.done.items():
        call.out.line()
        if status.master:
            _show_master(call, address, status)
        else:
            _show_slave(call, status)
    call.out.failures(answers.failed)
    call.out.value(answers.done)


def _show_master(call: Call, address: str, status: HaStatus) -> None:
    call.out.line(f"#MasterAddr\t{address}")
    call.out.line(f"#MasterCommitLogMaxOffset\t{status.master_commit_log_max_offset}")
    call.out.line(f"#SlaveNum\t{len(status.ha_connection_info)}")
    call.out.line(f"#InSyncSlaveNum\t{status.in_sync_slave_nums}")
    rows = [
        (
            one.addr,
            str(one.slave_ack_offset),
            str(one.diff),
            f"{one.transferred_byte_in_second / 1024:.2f}",
            "OK" if one.in_sync else "Fall Behind",
            str(one.transfer_from_where),
        )
        for one in status.ha_connection_info
    ]
    call.out.table(SLAVES, rows)


def _show_slave(call: Call, status: HaStatus) -> None:
    told = status.ha_client_runtime_info
    call.out.line(f"#MasterAddr\t{told.master_addr}")
    call.out.line(f"#CommitLogMaxOffset\t{told.max_offset}")
    call.out.line(f"#TransferSpeed(KB/s)\t{told.transferred_byte_in_second / 1024:.2f}")
    call.out.line(f"#LastReadTime\t{time_text(told.last_read_timestamp)}")
    call.out.line(f"#LastWriteTime\t{time_text(told.last_write_timestamp)}")
    call.out.line(f"#MasterFlushOffset\t{told.master_flush_offset}")


async def broker_epochs(call: Call) -> None:
    from cometmq.admin import Target

    # -b is a name here.
    target = Target(broker=call.args.text("b"), cluster=call.args.text("c"), with_slaves=True)
    answers = await call.admin.replication.epochs(target)
    for address, told in answers.done.items():
        call.out.line()
        call.out.line(f"#clusterName\t{told.cluster_name}")
        call.out.line(f"#brokerName\t{told.broker_name}")
        call.out.line(f"#brokerAddr\t{address}")
        call.out.line(f"#brokerId\t{told.broker_id}")
        for number, entry in enumerate(told.epoch_list, start=1):
            is_last = number == len(told.epoch_list)
            end = told.max_offset if is_last else entry.end_offset
            call.out.line(
                f"#Epoch: EpochEntry{{epoch={entry.epoch}, startOffset={entry.start_offset}, endOffset={end}}}"
            )
    call.out.failures(answers.failed)
    call.out.value(answers.done)


async def reset_flush_offset(call: Call) -> None:
    address, offset = call.args.needed("b"), call.args.number("o", 0, low=0)
    await call.admin.replication.reset_master_flush_offset(address, offset)
    call.out.line(f"reset master flush offset to {offset} success")
    call.out.value({"address": address, "offset": offset})


COMMANDS: Final = (
    Command(
        name="haStatus",
        summary="Show how far the slaves of masters are, or how far a slave is.",
        run=ha_status,
        options=(CLUSTER, BROKER, INTERVAL),
        interval="i",
        can_watch=True,
        examples=("haStatus -c DefaultCluster", "haStatus -b 127.0.0.1:10911 --watch 2"),
    ),
    Command(
        name="getBrokerEpoch",
        summary="Show which part of a broker's log was written under which master.",
        run=broker_epochs,
        options=(
            value("c", "clusterName", "all brokers of this cluster"),
            value("b", "brokerName", "name of a broker: all of its replicas"),
            INTERVAL,
        ),
        groups=EITHER,
        interval="i",
        can_watch=True,
        examples=("getBrokerEpoch -b broker-a",),
    ),
    Command(
        name="resetMasterFlushOffset",
        summary="Tell a slave how far its master's log is on disk.",
        run=reset_flush_offset,
        options=(
            value("b", "brokerAddr", "address of the slave"),
            value("o", "offset", "the offset"),
        ),
        confirm=lambda args: (
            f"tell the slave {args.needed('b')} that its master's log is on disk up to {args.needed('o')}"
        ),
        examples=("resetMasterFlushOffset -b 127.0.0.1:10921 -o 4096",),
    ),
)
