"""The subscription groups of this broker: ``config/subscriptionGroup.json``."""

from __future__ import annotations

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.store.meta.config_table import ConfigTable


class GroupTable(ConfigTable[SubscriptionGroupConfig]):
    FILE_NAME = "subscriptionGroup.json"
    TABLE_KEY = "subscriptionGroupTable"
    NAME_KEY = "groupName"
    ENTRY_CLASS = SubscriptionGroupConfig

    def _name(self, config: SubscriptionGroupConfig) -> str:
        return config.group_name
