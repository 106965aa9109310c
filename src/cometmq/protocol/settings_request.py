"""The request that changes a server's settings: all servers answer it alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import parse_properties_body
from cometmq.base.setting_keys import NotChangeable, next_start_remark
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused


def change_settings(
    command: Command, update: Callable[[Mapping[str, str]], list[str]], *, denial: str = ""
) -> Command:
    """The reply to a request whose body has the new settings. Raises Refused.

    Args:
        update: applies all of them or none, and returns the keys that take effect at the next start.
        denial: precedes the reason when a setting must not be changed; RocketMQ's servers differ in it.
    """
    try:
        later = update(parse_properties_body(command.body))
    except NotChangeable as error:
        raise Refused(ResponseCode.NO_PERMISSION, f"{denial}{error}") from None
    except ConfigError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return command.reply(remark=next_start_remark(later))
