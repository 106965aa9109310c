"""Settings of what a subscription may filter by."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting
from cometmq.model.sql92.limits import (
    DEFAULT_LIMITS,
    DEPTH_MAX,
    DEPTH_SETTING,
    LENGTH_MAX,
    LENGTH_SETTING,
    PARTS_MAX,
    PARTS_SETTING,
    SqlLimits,
)


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
    expression_length_max: int = setting(
        LENGTH_SETTING,
        "Maximum number of characters of a SQL92 expression.",
        default=LENGTH_MAX,
        low=1,
        high=1024 * 1024,
        next_start=True,
    )
    expression_depth_max: int = setting(
        DEPTH_SETTING,
        "Maximum nesting of operators and parentheses in a SQL92 expression.",
        default=DEPTH_MAX,
        low=1,
        high=DEPTH_MAX,
        next_start=True,
    )
    expression_parts_max: int = setting(
        PARTS_SETTING,
        "Maximum number of operators, properties and values that a SQL92 expression evaluates for a message; 8000 "
        "take about two milliseconds.",
        default=PARTS_MAX,
        low=1,
        next_start=True,
    )
    scan_micros_max: int = setting(
        "filterScanMicrosMax",
        "About how many microseconds one pull may spend on its SQL92 expression before it is answered with what it "
        "has found.",
        default=10_000,
        low=100,
        next_start=True,
    )
    filters_max: int = setting(
        "consumerFiltersMax",
        "Maximum number of SQL92 subscriptions of groups that are kept; the pulls of further ones find no filter.",
        default=10_000,
        low=1,
        next_start=True,
    )
    tags_max: int = setting(
        "subscriptionTagsMax",
        "Maximum number of tags in a subscription.",
        default=4096,
        low=1,
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

    @property
    def limits(self) -> FilterLimits:
        return FilterLimits(
            sql=SqlLimits(
                length_max=self.expression_length_max,
                depth_max=self.expression_depth_max,
                parts_max=self.expression_parts_max,
            ),
            scan_micros_max=self.scan_micros_max,
            filters_max=self.filters_max,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLimits:
    """What the filters of all groups may take."""

    sql: SqlLimits = DEFAULT_LIMITS
    scan_micros_max: int = 10_000
    filters_max: int = 10_000
