"""The broker's settings over the wire: requests 25 and 26."""

from __future__ import annotations

from cometmq.broker.config.live_config import LiveConfig
from cometmq.protocol.bodies.topic import encode_data_version
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.settings_request import change_settings
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
        return change_settings(command, self._live.update)

    def get(self, connection: Connection, command: Command) -> Command:
        version = encode_data_version(self._live.version).decode()
        return command.reply(ext={"version": version}, body=self._live.text().encode())
