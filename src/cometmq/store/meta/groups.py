"""The subscription groups of this broker: ``config/subscriptionGroup.json``."""

from __future__ import annotations

from cometmq.model.flags import Perm
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.store.meta.config_table import ConfigTable

_FORBIDDEN_KEY = "forbiddenTable"


class GroupTable(ConfigTable[SubscriptionGroupConfig]):
    FILE_NAME = "subscriptionGroup.json"
    TABLE_KEY = "subscriptionGroupTable"
    NAME_KEY = "groupName"
    ENTRY_CLASS = SubscriptionGroupConfig

    def forbidden(self) -> dict[str, dict[str, int]]:
        """What groups are not allowed to do, as permission bits by group and topic (RocketMQ 5)."""
        table = self._other_content.get(_FORBIDDEN_KEY)
        return table if isinstance(table, dict) else {}

    def is_readable(self, group: str, topic: str) -> bool:
        """Whether the group may read the topic; True unless it was forbidden."""
        return not self.forbidden().get(group, {}).get(topic, 0) & Perm.READ

    def set_readable(self, group: str, topic: str, readable: bool) -> None:
        """Forbid or allow reading."""
        table = {name: dict(topics) for name, topics in self.forbidden().items()}
        bits = table.get(group, {}).get(topic, 0)
        bits = bits & ~Perm.READ if readable else bits | Perm.READ
        if bits:
            table.setdefault(group, {})[topic] = int(bits)
        elif group in table:
            table[group].pop(topic, None)
            if not table[group]:
                del table[group]
        self.replace_forbidden(table)
        self._changed()

    def replace_forbidden(self, table: dict[str, dict[str, int]]) -> None:
        """Take another broker's word for it; part of a change of the table, which the caller makes."""
        self._other_content[_FORBIDDEN_KEY] = table

    def _name(self, config: SubscriptionGroupConfig) -> str:
        return config.group_name
