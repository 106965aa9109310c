"""How the property text of a sent message is stored: as RocketMQ 5.x does it, or as 4.9 does.

Both add the name of the cluster to a message that is sent alone. 4.9 leaves the rest as it came, but takes WAIT out.
5.x makes a map of the text and also puts in where the message arrived (MSG_REGION) and whether it may be traced
(TRACE_ON), without which its own consumers write no trace. It then writes the map in the order in which Java's HashMap
gives it out, and so do we: the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.config_slices import FORM_5
from cometmq.model.java_hash import unsigned_hash
from cometmq.model.messages.properties import (
    CLUSTER,
    MSG_REGION,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    TRACE_ON,
    WAIT,
)

_WAIT_PAIR: Final = WAIT + NAME_SEPARATOR
_MAP_BUCKETS: Final = 128
_CACHED_NAMES: Final = 512

_Order = Callable[[Sequence[str]], tuple[str, ...]]


class StoredForm:
    """One object for each combination of settings, made by ``stored_form``; compared by identity, which is quick."""

    __slots__ = ("_added", "_cluster", "_is_5")

    def __init__(self, form: str, cluster: str, region: str, is_traced: bool) -> None:
        self._is_5 = form == FORM_5
        self._cluster = _pair(CLUSTER, cluster)
        self._added = {
            MSG_REGION: _pair(MSG_REGION, region),
            TRACE_ON: _pair(TRACE_ON, "true" if is_traced else "false"),
            CLUSTER: self._cluster,
        }

    def of_message(self, pairs: list[str]) -> str:
        """The text of a message that is sent alone; ``pairs`` is what came, cut at the separators."""
        return self._of_map(pairs) if self._is_5 else self._with_cluster(pairs)

    def of_element(self, pairs: list[str]) -> str:
        """The text of one of a batch."""
        text = PAIR_SEPARATOR.join(pairs)
        if self._is_5:
            return text
        return text + self._cluster if not pairs[-1] else f"{text}{PAIR_SEPARATOR}{self._cluster}"

    def _with_cluster(self, pairs: list[str]) -> str:
        kept = [pair for pair in pairs if not pair.startswith(_WAIT_PAIR)]
        if kept and not kept[-1]:
            kept.pop()
        kept.append(self._cluster)
        return PAIR_SEPARATOR.join(kept)

    def _of_map(self, pairs: list[str]) -> str:
        parts: dict[str, str] = {}
        for pair in pairs:
            name, _, value = pair.partition(NAME_SEPARATOR)
            # A value with a separator in it is for nobody to read; it must not hide one that is.
            if name and value and (NAME_SEPARATOR not in value or name not in parts):
                parts[name] = pair
        parts |= self._added
        names = tuple(parts)
        order = _cached_order if sum(map(len, names)) <= _CACHED_NAMES else _map_order
        return PAIR_SEPARATOR.join(order(names)(tuple(parts.values()))) + PAIR_SEPARATOR


def form_of(config: BrokerConfig) -> StoredForm:
    """What the settings say."""
    return stored_form(
        config.topics.stored_properties,
        cluster=config.identity.cluster_name,
        region=config.identity.region_id,
        is_traced=config.topics.trace_on,
    )


@lru_cache(maxsize=16)
def stored_form(form: str, *, cluster: str, region: str, is_traced: bool) -> StoredForm:
    """Args: form: ``FORM_4`` or ``FORM_5``."""
    return StoredForm(form, cluster, region, is_traced)


def _pair(name: str, value: str) -> str:
    return f"{name}{NAME_SEPARATOR}{value}"


def _map_order(names: tuple[str, ...]) -> _Order:
    """Puts what belongs to the names, given in the same order, into that of a HashMap they were entered into."""
    buckets = _MAP_BUCKETS
    while len(names) > buckets * 3 // 4:
        buckets *= 2
    hashes = [unsigned_hash(name) for name in names]
    places = [(bits ^ bits >> 16) & (buckets - 1) for bits in hashes]
    return itemgetter(*sorted(range(len(names)), key=places.__getitem__))


_cached_order = lru_cache(maxsize=1024)(_map_order)
