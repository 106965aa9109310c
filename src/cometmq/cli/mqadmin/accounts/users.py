"""Users, as RocketMQ 5 has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, needed, value
from cometmq.cli.mqadmin.texts import java

if TYPE_CHECKING:
    from cometmq.protocol.bodies.auth import User

USERS: Final = Layout(
    ("#UserName", "#Password", "#UserType", "#UserStatus"), "%-16s  %-22s  %-22s  %-22s"
)


def _show_users(call: Call, users: Iterable[User]) -> None:
    rows = [
        (user.username, java(user.password), java(user.user_type), java(user.user_status))
        for user in users
    ]
    if rows:
        call.out.table(USERS, rows)


async def create_user(call: Call) -> None:
    args = call.args
    done = await call.admin.users.create(
        args.needed("u"),
        args.needed("p"),
        user_type=args.text("t", "Normal"),
        target=call.target(with_slaves=True),
    )
    call.out.done(done, "create user to {address} success.")


async def update_user(call: Call) -> None:
    args = call.args
    done = await call.admin.users.update(
        args.needed("u"),
        password=args.text("p"),
        user_type=args.text("t"),
        user_status=args.text("s"),
        target=call.target(with_slaves=True),
    )
    call.out.done(done, "update user to {address} success.")


async def delete_user(call: Call) -> None:
    done = await call.admin.users.delete(call.args.needed("u"), call.target(with_slaves=True))
    call.out.done(done, "delete user to {address} success.")


async def get_user(call: Call) -> None:
    name = call.args.text("u")
    if name is None:
        await list_users(call)
        return
    answers = await call.admin.users.get(name, call.target())
    user = next((user for user in answers.values() if user is not None), None)
    _show_users(call, [user] if user else [])
    call.out.failures(answers.failed)
    call.out.value(user)


async def list_users(call: Call) -> None:
    target = call.target()
    answers = await call.admin.users.all(call.args.text("f", ""), target)
    # Servers of a cluster have the same accounts: the first that has some speaks for all.
    address, users = next(((one, users) for one, users in answers.done.items() if users), ("", []))
    _show_users(call, users)
    if target.cluster and users:
        call.out.line(f"get user from {address} success.")
    call.out.failures(answers.failed)
    call.out.value(users)


async def copy_user(call: Call) -> None:
    args = call.args
    source, destination = args.needed("f"), args.needed("t")
    for name in await call.admin.users.copy(source, destination, args.names("u")):
        call.out.line(f"copy user of {name} from {source} to {destination} success.")
    call.out.value({"from": source, "to": destination})


NAME: Final = needed("u", "username", "name of the user")

COMMANDS: Final = (
    Command(
        name="createUser",
        summary="Create a user.",
        run=create_user,
        options=(
            CLUSTER,
            BROKER,
            NAME,
            needed("p", "password", "the password"),
            value("t", "userType", "Normal, or Super, who may do everything (Normal)"),
        ),
        groups=EITHER,
        examples=("createUser -c DefaultCluster -u shop -p 'a password'",),
    ),
    Command(
        name="updateUser",
        summary="Change the password, type or status of a user.",
        run=update_user,
        options=(
            CLUSTER,
            BROKER,
            NAME,
            value("p", "password", "a new password"),
            value("t", "userType", "Normal or Super"),
            value("s", "userStatus", "enable or disable"),
        ),
        groups=(*EITHER, ("p", "t", "s")),
        examples=("updateUser -c DefaultCluster -u shop -s disable",),
    ),
    Command(
        name="deleteUser",
        summary="Delete a user with its rules.",
        run=delete_user,
        options=(CLUSTER, BROKER, NAME),
        groups=EITHER,
        confirm=lambda args: f"delete user {args.text('u')} with its rules",
        examples=("deleteUser -c DefaultCluster -u shop",),
    ),
    Command(
        name="getUser",
        summary="Show a user.",
        run=get_user,
        options=(BROKER, CLUSTER, value("u", "username", "name of the user")),
        groups=EITHER,
        examples=("getUser -c DefaultCluster -u shop",),
    ),
    Command(
        name="listUser",
        summary="List users.",
        run=list_users,
        options=(BROKER, CLUSTER, value("f", "filter", "with this in their name")),
        groups=EITHER,
        examples=("listUser -c DefaultCluster",),
    ),
    Command(
        name="copyUser",
        summary="Create or change users at one broker so that they are as at another one.",
        run=copy_user,
        options=(
            needed("f", "fromBroker", "address of the broker that has them"),
            needed("t", "toBroker", "address of the broker that gets them"),
            value("u", "usernames", "names, separated by commas; without it, all"),
        ),
        examples=("copyUser -f 10.0.0.1:10911 -t 10.0.0.2:10911 -u shop",),
    ),
)
