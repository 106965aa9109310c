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
        "Also filter messages of retry topics, by the group's subscription to the original topic.",
        default=False,
        live=True,
    )
    calculates_bits: bool = setting(
        "enableCalcFilterBitMap",
        "Record in the extended consume queue which groups' SQL92 filters match a message (needs "
        "enableConsumeQueueExt).",
        default=False,
        live=True,
    )
    bloom_expected_count: int = setting(
        "expectConsumerNumUseFilter",
        "Number of groups with a filter per topic that the filter bits are sized for.",
        default=32,
        low=1,
        high=10_000,
        next_start=True,
    )
    bloom_error_percent: int = setting(
        "maxErrorRateOfBloomFilter",
        "Percentage of messages that the filter bits may let through although the filter does not "
        "match.",
        default=20,
        low=1,
        high=99,
        next_start=True,
    )
    function_directory: str = setting(
        "filterFunctionDirectory",
        "Directory of filter functions (name.py with wants(message)), for subscriptions of type "
        "PYTHON; empty: none.",
        default="",
    )
    function_workers: int = setting(
        "filterFunctionWorkers",
        "Maximum number of processes that run filter functions.",
        default=2,
        low=1,
        high=256,
    )
    function_batch_ms: int = setting(
        "filterFunctionBatchMillis",
        "Maximum time in milliseconds that a filter function may take for the messages of one pull,"
        " at most 32.",
        default=1000,
        low=10,
        high=60_000,
    )
    function_memory_bytes: int = setting(
        "filterFunctionMemoryMax",
        "Maximum address space, in bytes, of a process that runs filter functions.",
        default=512 * 1024 * 1024,
        low=64 * 1024 * 1024,
    )
