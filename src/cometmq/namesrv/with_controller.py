"""A name server with a controller in the same process (``enableControllerInNamesrv``), each on its own port.

Both read the same file. The keys that both know are the name server's, except for the address, the TLS file and those
about accounts, which hold for both; each keeps its accounts next to its other data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.access.access_config import ServerAccessConfig
from cometmq.base.settings import rows
from cometmq.controller.controller_config import SCHEMA, ControllerConfig
from cometmq.controller.server import Controller
from cometmq.namesrv.namesrv_config import NamesrvConfig, namesrv_rows
from cometmq.namesrv.server import NameServer

_SHARED: Final = frozenset(
    {"bindAddress", "tls.config.file", "configStorePath"}
    | {row.key for row in rows(ServerAccessConfig)} - {"accountPath", "auditLogPath"}
)


class NameServerWithController:
    """``start`` it once, ``stop`` it once, both on the same event loop."""

    def __init__(self, config: NamesrvConfig, controller: ControllerConfig) -> None:
        """Raises ConfigError."""
        self.controller = Controller(controller)
        # One page for both: the settings of metrics are the name server's.
        self.name_server = NameServer(config, beside=[self.controller.metrics.source])

    async def start(self) -> None:
        """Raises what either of them raises; nothing is left running then."""
        await self.name_server.start()
        try:
            await self.controller.start()
        except BaseException:
            await self.name_server.stop()
            raise

    def is_alive(self) -> bool:
        return self.name_server.is_alive() and self.controller.is_alive()

    def dump(self) -> None:
        self.name_server.dump()
        self.controller.dump()

    async def stop(self) -> None:
        try:
            await self.controller.stop()
        finally:
            await self.name_server.stop()


def controller_keys() -> frozenset[str]:
    """The keys in a name server's file that are for its controller alone."""
    return frozenset(SCHEMA.rows) - frozenset(namesrv_rows())


def load_controller(values: Mapping[str, str]) -> ControllerConfig:
    """The settings of the controller in a name server's file. Raises ConfigError."""
    wanted = controller_keys() | _SHARED
    return SCHEMA.load({key: text for key, text in values.items() if key in wanted})[0]
