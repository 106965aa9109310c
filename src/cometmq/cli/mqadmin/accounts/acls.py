"""What users may do, as RocketMQ 5 has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, needed, value
from cometmq.cli.mqadmin.texts import java

if TYPE_CHECKING:
    from cometmq.protocol.bodies.auth import Acl

ACLS: Final = Layout(
    ("#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision"),
    "%-16s  %-10s  %-22s  %-20s  %-24s  %-10s",
)


async def create_acl(call: Call) -> None:
    done = await call.admin.acls.create(
        call.args.needed("s"), target=call.target(with_slaves=True), **_rules(call)
    )
    call.out.done(done, "create acl to {address} success.")


async def update_acl(call: Call) -> None:
    done = await call.admin.acls.update(
        call.args.needed("s"), target=call.target(with_slaves=True), **_rules(call)
    )
    call.out.done(done, "update acl to {address} success.")


def _rules(call: Call) -> dict[str, Any]:
    return {
        "resources": call.args.names("r"),
        "actions": call.args.names("a"),
        "decision": call.args.needed("d"),
        "source_ips": call.args.names("i"),
    }


async def delete_acl(call: Call) -> None:
    done = await call.admin.acls.delete(
        call.args.needed("s"), call.args.text("r"), target=call.target(with_slaves=True)
    )
    call.out.done(done, "delete acl to {address} success.")


async def get_acl(call: Call) -> None:
    subject = call.args.text("s")
    if subject is None:
        await list_acls(call)
        return
    answers = await call.admin.acls.get(subject, call.target())
    acl = next((acl for acl in answers.values() if acl is not None), None)
    _show(call, [acl] if acl else [])
    call.out.failures(answers.failed)
    call.out.value(acl)


async def list_acls(call: Call) -> None:
    args = call.args
    answers = await call.admin.acls.all(args.text("s", ""), args.text("r", ""), call.target())
    acls = next((acls for acls in answers.values() if acls), [])
    _show(call, acls)
    call.out.failures(answers.failed)
    call.out.value(acls)


def _show(call: Call, acls: Iterable[Acl]) -> None:
    rows = [
        (
            java(acl.subject),
            java(policy.policy_type),
            java(entry.resource),
            java(entry.actions),
            java(entry.source_ips),
            java(entry.decision),
        )
        for acl in acls
        for policy in acl.policies
        for entry in policy.entries
    ]
    if rows:
        call.out.table(ACLS, rows)


async def copy_acl(call: Call) -> None:
    args = call.args
    source, destination = args.needed("f"), args.needed("t")
    for subject in await call.admin.acls.copy(source, destination, args.names("s")):
        call.out.line(f"copy acl of {subject} from {source} to {destination} success.")
    call.out.value({"from": source, "to": destination})


SUBJECT: Final = needed("s", "subject", "whom the rules are for, like User:shop")
RULES: Final = (
    needed("r", "resources", "like Topic:Orders,Group:*"),
    needed("a", "actions", "of Pub, Sub, Create, Update, Delete, Get, List, All"),
    needed("d", "decision", "Allow or Deny"),
    value("i", "sourceIp", "only from these addresses or networks"),
)

COMMANDS: Final = (
    Command(
        name="createAcl",
        summary="Add rules to what a user may do.",
        run=create_acl,
        options=(CLUSTER, BROKER, SUBJECT, *RULES),
        groups=EITHER,
        examples=("createAcl -c DefaultCluster -s User:shop -r Topic:Orders -a Pub -d Allow",),
    ),
    Command(
        name="updateAcl",
        summary="Change rules of what a user may do.",
        run=update_acl,
        options=(CLUSTER, BROKER, SUBJECT, *RULES),
        groups=EITHER,
        examples=("updateAcl -c DefaultCluster -s User:shop -r Topic:Orders -a Pub,Sub -d Allow",),
    ),
    Command(
        name="deleteAcl",
        summary="Delete rules of what a user may do.",
        run=delete_acl,
        options=(
            CLUSTER,
            BROKER,
            SUBJECT,
            value("r", "resources", "only the rule for this resource"),
        ),
        groups=EITHER,
        confirm=lambda args: (
            f"delete the rule of {args.text('s')} for {args.text('r')}"
            if args.text("r")
            else f"delete all rules of {args.text('s')}"
        ),
        examples=("deleteAcl -c DefaultCluster -s User:shop -r Topic:Orders",),
    ),
    Command(
        name="getAcl",
        summary="Show what a user may do.",
        run=get_acl,
        options=(BROKER, CLUSTER, value("s", "subject", "like User:shop")),
        groups=EITHER,
        examples=("getAcl -c DefaultCluster -s User:shop",),
    ),
    Command(
        name="listAcl",
        summary="List what users may do.",
        run=list_acls,
        options=(
            BROKER,
            CLUSTER,
            value("s", "subject", "with this in the subject"),
            value("r", "resource", "with this in the resource"),
        ),
        groups=EITHER,
        examples=("listAcl -c DefaultCluster -r Orders",),
    ),
    Command(
        name="copyAcl",
        summary="Add the rules of one broker to those of another.",
        run=copy_acl,
        options=(
            needed("f", "fromBroker", "address of the broker that has them"),
            needed("t", "toBroker", "address of the broker that gets them"),
            value("s", "subjects", "like User:shop, separated by commas; without it, all"),
        ),
        examples=("copyAcl -f 10.0.0.1:10911 -t 10.0.0.2:10911",),
    ),
)
