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
    calculates_bits: bool = setting(
        "enableCalcFilterBitMap",
        "Note in the extended consume queue which groups' SQL92 filters want a message (needs enableConsumeQueueExt).",
        default=False,
        live=True,
    )
    bloom_expected_count: int = setting(
        "expectConsumerNumUseFilter",
        "Groups per topic with a filter that these bits are made for.",
        default=32,
        low=1,
        high=10_000,
        next_start=True,
    )
    bloom_error_percent: int = setting(
        "maxErrorRateOfBloomFilter",
        "Percent of messages that the bits may let through though the filter does not want them.",
        default=20,
        low=1,
        high=99,
        next_start=True,
    )
    function_directory: str = setting(
        "filterFunctionDirectory",
        "Directory of filter functions (name.py with wants(message)), for subscriptions of type PYTHON; empty: none.",
        default="",
    )
    function_workers: int = setting(
        "filterFunctionWorkers",
        "Most processes that run filter functions.",
        default=2,
        low=1,
        high=256,
    )
    function_batch_ms: int = setting(
        "filterFunctionBatchMillis",
        "Longest time a filter function may take for the messages of one pull, at most 32.",
        default=1000,
        low=10,
        high=60_000,
    )
    function_memory_bytes: int = setting(
        "filterFunctionMemoryMax",
        "Address space of a process that runs filter functions, in bytes.",
        default=512 * 1024 * 1024,
        low=64 * 1024 * 1024,
    )
