"""``cometmq hand-over``: before a master is stopped, another replica becomes the master, and no send fails.

For the stop of a container or a service: the broker is asked who it is, its controller who could follow, and the
controller elects that one, for which the old master passes on what comes late.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from cometmq.base.errors import CometError
from cometmq.cli.client_command import client_config, connection_options, exit_codes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cometmq.client import ClientConfig
    from cometmq.protocol.bodies.ha import ReplicasInfo

LOOK_SECONDS: Final = 0.3
LOCAL_BROKER: Final = "127.0.0.1:10911"


class NotHandedOver(CometError):
    """The broker is still the master."""


@click.command("hand-over", short_help="Let another replica become the master.")
@click.option(
    "-b",
    "--broker",
    "address",
    default=LOCAL_BROKER,
    show_default=True,
    metavar="HOST:PORT",
    help="The broker that is to be stopped.",
)
@connection_options
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    help="Seconds to wait for a replica that has everything, and for the change.",
)
def hand_over(
    address: str, name_servers: str | None, config_file: str | None, timeout: float
) -> None:
    """Let another replica become the master before a broker is stopped.

    The controller elects a replica that is alive and has every acknowledged message. If there is none yet, because one
    has just been restarted, the command waits for it. The broker keeps running, as a slave: stop it afterwards. For a
    broker that is not a master, there is nothing to do.

    \b
    Exit code: 0 it is not the master (any more); 1 it still is, and why; 2 a wrong option.

    \b
    Example:
      cometmq hand-over -b 10.0.0.7:10911 && sudo systemctl restart cometmq-broker
    """
    with exit_codes("cometmq hand-over"):
        config = client_config(name_servers, config_file)
        asyncio.run(_within(timeout, config, address))
    click.echo(f"broker {address} is not the master")


def successor(info: ReplicasInfo) -> int | None:
    """The replica to elect; None if there is no other that is alive and has everything."""
    others = (one for one in info.in_sync_replicas if one.broker_id != info.master_broker_id)
    return next((one.broker_id for one in others if one.alive), None)


class _Progress:
    """Why it has not happened yet."""

    reason = "it does not answer"


async def _within(seconds: float, config: ClientConfig, address: str) -> None:
    progress = _Progress()
    try:
        async with asyncio.timeout(seconds):
            await _until_not_master(config, address, progress)
    except TimeoutError:
        raise NotHandedOver(
            f"broker {address} is still the master after {seconds:g} s: {progress.reason}"
        ) from None


async def _until_not_master(config: ClientConfig, address: str, progress: _Progress) -> None:
    while (settings := await _settings(config, address)).get("brokerRole") != "SLAVE":
        if settings.get("enableControllerMode") != "true":
            raise NotHandedOver(
                f"broker {address} has no controller (enableControllerMode): nobody can take over"
            )
        try:
            progress.reason = await _elect_another(config, settings)
        except CometError as error:
            # It may be another one's turn to lead, or this one's again in a moment.
            progress.reason = str(error)
        await asyncio.sleep(LOOK_SECONDS)


async def _settings(config: ClientConfig, address: str) -> Mapping[str, str]:
    from cometmq.admin import Admin
    from cometmq.admin.target import Target

    async with Admin(config=config) as admin:
        answers = await admin.brokers.settings(Target(address=address))
    answers.raise_failed("asking the broker for its settings")
    return answers.done[address]


async def _elect_another(config: ClientConfig, settings: Mapping[str, str]) -> str:
    """Why the broker may still be the master. Raises CometError."""
    from cometmq.admin import Admin

    cluster, name = settings["brokerClusterName"], settings["brokerName"]
    async with Admin(config=config, controllers=settings["controllerAddr"]) as admin:
        info = (await admin.controllers.sync_states([name])).get(name)
        chosen = None if info is None else successor(info)
        if chosen is None:
            return "no other replica is alive and has everything that was acknowledged"
        await admin.controllers.elect(cluster, name, chosen)
    return f"replica {chosen} was elected, but the broker does not know it yet"
