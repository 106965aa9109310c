"""The broker's settings over the wire: requests 25 and 26."""

from __future__ import annotations

from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import parse_properties_body
from cometmq.base.setting_keys import NotChangeable, next_start_remark
from cometmq.broker.config.live_config import LiveConfig
from cometmq.protocol.bodies.topic import encode_data_version
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class ConfigAdmin:
    def __init__(self, live: LiveConfig) -> None:
        self._live = live

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.UPDATE_BROKER_CONFIG, self.update)
        dispatcher.add(RequestCode.GET_BROKER_CONFIG, self.get)

    def update(self, connection: Connection, command: Command) -> Command:
        """All of the settings in the body or none: a tool that sends ten must not guess which of them count."""
        try:
            later = self._live.update(parse_properties_body(command.body))
        except NotChangeable as error:
            raise Refused(ResponseCode.NO_PERMISSION, str(error)) from None
        except ConfigError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        return command.reply(remark=next_start_remark(later))

    def get(self, connection: Connection, command: Command) -> Command:
        version = encode_data_version(self._live.version).decode()
        return command.reply(ext={"version": version}, body=self._live.text().encode())
