"""Settings of what a subscription may filter by."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class FiltersConfig:
    property_filter: bool = setting(
        "enablePropertyFilter", "Allow SQL92 subscriptions.", default=True, live=True
    )
    retry_too: bool = setting(
        "filterSupportRetry",
        "Filter the messages of retry topics, too, by what their group wants of the topic they came from.",
        default=False,
        live=True,
    )
    bloom_expected_count: int = setting(
        "expectConsumerNumUseFilter",
        "Groups per topic with a filter that the bits kept with each message are made for.",
        default=32,
        low=1,
        high=10_000,
    )
    bloom_error_percent: int = setting(
        "maxErrorRateOfBloomFilter",
        "Percent of false hits among these bits.",
        default=20,
        low=1,
        high=99,
    )
