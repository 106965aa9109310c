"""Settings of brokers and name servers, and the key-value store of name servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, needed, value
from cometmq.cli.mqadmin.texts import SETTING

KEY: Final = needed("k", "key", "name of the setting")
VALUE: Final = needed("v", "value", "its new value")
_EDGE: Final = "============"


def show_settings(call: Call, head: str, settings: Mapping[str, str]) -> None:
    """A server's settings, as RocketMQ's tool prints them for servers of any kind."""
    call.out.line(f"{_EDGE}{head}{_EDGE}")
    for key, text in sorted(settings.items()):
        call.out.line(SETTING % (key, text))


async def get_broker_config(call: Call) -> None:
    target = call.target(with_slaves=True)
    answers = await call.admin.brokers.settings(target)
    heads: dict[str, str] = {}
    if target.cluster:
        places = await call.admin.brokers.places(target)
        masters = {one.broker_name: one.address for one in places if one.is_master}
        for one in places:
            master = masters.get(one.broker_name, "NO_MASTER")
            heads[one.address] = (
                f"Master: {one.address}"
                if one.is_master
                else f"My Master: {master}=====Slave: {one.address}"
            )
    for address, settings in answers.done.items():
        show_settings(call, heads.get(address, address), settings)
    call.out.failures(answers.failed)
    call.out.value(answers.done)


async def update_broker_config(call: Call) -> None:
    key, text = call.args.needed("k"), call.args.raw("v") or ""
    target = call.target(with_slaves="a" in call.args)
    answers = await call.admin.brokers.update_settings({key: text}, target)
    for address, remark in answers.done.items():
        call.out.line(f"update broker config success, {address}")
        _show_remark(call, remark)
    call.out.failures(answers.failed)
    call.out.value({"done": answers.done, "key": key, "value": text})


def _show_remark(call: Call, remark: str) -> None:
    """Ours say here when a setting takes effect at the next start only."""
    if remark:
        call.out.line(remark)


async def get_namesrv_config(call: Call) -> None:
    answers = await call.admin.name_servers.settings()
    for address, settings in answers.done.items():
        show_settings(call, address, settings)
    call.out.failures(answers.failed)
    call.out.value(answers.done)


async def update_namesrv_config(call: Call) -> None:
    key, text = call.args.needed("k"), call.args.raw("v") or ""
    answers = await call.admin.name_servers.update_settings({key: text})
    if answers.done:
        call.out.line(f"update name server config success![{', '.join(answers.done)}]")
        call.out.line(f"{key} : {text}")
        for remark in answers.values():
            _show_remark(call, remark)
    call.out.failures(answers.failed)
    call.out.value({"done": answers.done, "key": key, "value": text})


async def update_kv_config(call: Call) -> None:
    args = call.args
    done = await call.admin.kv.put(args.needed("s"), args.needed("k"), args.raw("v") or "")
    if done.done:
        call.out.line("create or update kv config to namespace success.")
    call.out.done(done)


async def delete_kv_config(call: Call) -> None:
    done = await call.admin.kv.delete(call.args.needed("s"), call.args.needed("k"))
    if done.done:
        call.out.line("delete kv config from namespace success.")
    call.out.done(done)


COMMANDS: Final = (
    Command(
        name="getBrokerConfig",
        summary="Show the settings of a broker, or of all brokers of a cluster.",
        run=get_broker_config,
        options=(BROKER, CLUSTER),
        groups=EITHER,
        examples=("getBrokerConfig -b 127.0.0.1:10911",),
    ),
    Command(
        name="updateBrokerConfig",
        summary="Change a setting of a broker, or of all masters of a cluster.",
        run=update_broker_config,
        options=(
            BROKER,
            CLUSTER,
            value("a", "updateAllBroker", "slaves of the cluster, too; the value has no meaning"),
            KEY,
            VALUE,
        ),
        examples=("updateBrokerConfig -c DefaultCluster -k flushDiskType -v SYNC_FLUSH",),
    ),
    Command(
        name="getNamesrvConfig",
        summary="Show the settings of all name servers.",
        run=get_namesrv_config,
        examples=("getNamesrvConfig",),
    ),
    Command(
        name="updateNamesrvConfig",
        summary="Change a setting of all name servers.",
        run=update_namesrv_config,
        options=(KEY, VALUE),
        examples=("updateNamesrvConfig -k orderMessageEnable -v true",),
    ),
    Command(
        name="updateKvConfig",
        summary="Store a text at all name servers.",
        run=update_kv_config,
        options=(
            needed("s", "namespace", "the namespace"),
            needed("k", "key", "the key"),
            needed("v", "value", "the text"),
        ),
        examples=("updateKvConfig -s my-space -k colour -v green",),
    ),
    Command(
        name="deleteKvConfig",
        summary="Delete a text at all name servers.",
        run=delete_kv_config,
        options=(needed("s", "namespace", "the namespace"), needed("k", "key", "the key")),
        confirm=lambda args: (
            f"delete key {args.text('k')} of namespace {args.text('s')} at all name servers"
        ),
        examples=("deleteKvConfig -s my-space -k colour",),
    ),
)
