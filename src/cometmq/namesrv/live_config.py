"""The settings of a running name server."""

from __future__ import annotations

from cometmq.base.live_settings import LiveSettings
from cometmq.base.ports import Files
from cometmq.namesrv.namesrv_config import SCHEMA, NamesrvConfig


class LiveConfig(LiveSettings[NamesrvConfig]):
    def __init__(self, config: NamesrvConfig, files: Files) -> None:
        super().__init__(SCHEMA, config, files)
