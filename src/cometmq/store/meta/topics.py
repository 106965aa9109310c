"""The topics of this broker: ``config/topics.json``."""

from __future__ import annotations

from cometmq.model.topic import TopicConfig
from cometmq.store.meta.config_table import ConfigTable


class TopicTable(ConfigTable[TopicConfig]):
    FILE_NAME = "topics.json"
    TABLE_KEY = "topicConfigTable"
    NAME_KEY = "topicName"
    ENTRY_CLASS = TopicConfig

    def _name(self, config: TopicConfig) -> str:
        return config.topic_name
