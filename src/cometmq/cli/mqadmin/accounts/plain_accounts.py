"""Accounts as RocketMQ 4 has them."""

from __future__ import annotations

from typing import Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, needed, value
from cometmq.cli.mqadmin.texts import java, time_text
from cometmq.protocol.bodies.auth import PlainAccess

VERSIONS: Final = Layout(
    (
        *("#Cluster Name", "#Broker Name", "#Broker Addr", "#AclFilePath"),
        *("#AclConfigVersionNum", "#AclLastUpdateTime"),
    ),
    "%-16s  %-22s  %-22s  %-20s  %-22s  %-22s",
)


async def update_account(call: Call) -> None:
    args = call.args
    account = PlainAccess(
        access_key=args.needed("a"),
        secret_key=args.needed("s"),
        white_remote_address=args.text("w"),
        default_topic_perm=args.text("i"),
        default_group_perm=args.text("u"),
        topic_perms=args.names("t") or None,
        group_perms=args.names("g") or None,
        admin=args.truth("m", False),
    )
    done = await call.admin.plain_accounts.put(account, call.target(with_slaves=True))
    for address in done.done:
        call.out.line(f"create or update plain access config to {address} success.")
    if done.done:
        call.out.line(_account_text(account))
    call.out.failures(done.failed)
    call.out.value({"done": list(done.done), "access_key": account.access_key})


def _account_text(account: PlainAccess) -> str:
    """Without the secret, which RocketMQ's tool shows on the screen."""
    return (
        f"PlainAccessConfig{{accessKey='{account.access_key}', "
        f"whiteRemoteAddress='{java(account.white_remote_address)}', admin={java(account.admin)}, "
        f"defaultTopicPerm='{java(account.default_topic_perm)}', "
        f"defaultGroupPerm='{java(account.default_group_perm)}', "
        f"topicPerms={java(account.topic_perms)}, groupPerms={java(account.group_perms)}}}"
    )


async def delete_account(call: Call) -> None:
    key = call.args.needed("a")
    done = await call.admin.plain_accounts.delete(key, call.target(with_slaves=True))
    for address in done.done:
        call.out.line(f"delete plain access config account from {address} success.")
    if done.done:
        call.out.line(f"account's accesskey is:{key}")
    call.out.failures(done.failed)
    call.out.value({"done": list(done.done), "access_key": key})


async def account_versions(call: Call) -> None:
    target = call.target(with_slaves=True)
    answers = await call.admin.plain_accounts.versions(target)
    rows = [
        (
            told.cluster,
            told.broker_name,
            told.address,
            path,
            str(version.counter),
            time_text(version.timestamp).partition(",")[0],
        )
        for told in answers.values()
        for path, version in told.files.items()
    ]
    call.out.table(VERSIONS, rows, has_head=bool(target.cluster))
    if answers.done:
        kind = "cluster" if target.cluster else "broker"
        call.out.line(f"get {kind}'s plain access config version success.")
    call.out.failures(answers.failed)
    call.out.value(answers.values())


async def update_white_addresses(call: Call) -> None:
    addresses = call.args.names("g")
    done = await call.admin.plain_accounts.set_white_addresses(
        addresses, path=call.args.text("p"), target=call.target(with_slaves=True)
    )
    line = "update global white remote addresses to {address} success."
    call.out.done(done, line, addresses=addresses)


KEY: Final = needed("a", "accessKey", "name of the account")

COMMANDS: Final = (
    Command(
        name="updateAclConfig",
        summary="Create an account of RocketMQ 4, or change it.",
        run=update_account,
        options=(
            BROKER,
            CLUSTER,
            KEY,
            needed("s", "secretKey", "its secret"),
            value("w", "whiteRemoteAddress", "addresses from which its requests need no secret"),
            value("i", "defaultTopicPerm", "PUB, SUB, PUB|SUB or DENY"),
            value("u", "defaultGroupPerm", "SUB or DENY"),
            value("t", "topicPerms", "like Orders=PUB|SUB,Payments=DENY"),
            value("g", "groupPerms", "like billing=SUB"),
            value("m", "admin", "true: it may do everything (false)"),
        ),
        groups=EITHER,
        examples=("updateAclConfig -c DefaultCluster -a shop-account -s 'a secret' -i PUB",),
    ),
    Command(
        name="deleteAclConfig",
        summary="Delete an account of RocketMQ 4.",
        run=delete_account,
        options=(BROKER, CLUSTER, KEY),
        groups=EITHER,
        confirm=lambda args: f"delete account {args.text('a')}",
        examples=("deleteAclConfig -c DefaultCluster -a shop-account",),
    ),
    Command(
        name="clusterAclConfigVersion",
        summary="Show which version of the account files of RocketMQ 4 brokers have.",
        run=account_versions,
        options=(BROKER, CLUSTER),
        groups=EITHER,
        examples=("clusterAclConfigVersion -c DefaultCluster",),
    ),
    Command(
        name="updateGlobalWhiteAddr",
        summary="Replace the addresses from which RocketMQ 4 asks for no account.",
        run=update_white_addresses,
        options=(
            BROKER,
            CLUSTER,
            needed("g", "globalWhiteRemoteAddresses", "like 10.10.103.*,192.168.0.*"),
            value(
                "p",
                "aclFileFullPath",
                "of the account file at the broker; without it, the main one",
            ),
        ),
        groups=EITHER,
        confirm=lambda args: (
            f"let everybody in who comes from {args.text('g')}, without an account"
        ),
        examples=("updateGlobalWhiteAddr -c DefaultCluster -g 10.10.103.*",),
    ),
)
