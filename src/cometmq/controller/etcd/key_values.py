"""etcd's keys and values, through transactions alone, and the guard against an etcd that has gone back in time."""

from __future__ import annotations

from cometmq.controller.decision_store import StoreAway
from cometmq.controller.etcd.etcd_words import TxnReply, Words
from cometmq.controller.etcd.gateway import Answer, EtcdGateway

_ADVICE = (
    "restored from a copy, or emptied? Decisions that were made since are missing there, so none is made on it. If "
    "that is how it shall be, restart all controllers of this group"
)


class WentBack(StoreAway):
    """This etcd does not know any more what it has told before."""


class KeyValues:
    def __init__(self, gateway: EtcdGateway) -> None:
        self._gateway = gateway
        self._revision = 0
        self._went_back = ""

    async def txn(self, words: Words) -> Answer[TxnReply]:
        """Raises WentBack, and what ``EtcdGateway.call`` raises."""
        if self._went_back:
            raise WentBack(self._went_back)
        # Not the highest when the answer comes: several calls may be under way, and be answered in any order.
        before = self._revision
        answer = await self._gateway.call("kv/txn", words, TxnReply)
        revision = answer.reply.header.revision
        if revision < before:
            raise self.went_back(f"revision {revision} after {before}")
        self._revision = max(self._revision, revision)
        return answer

    def went_back(self, what: str) -> WentBack:
        """For good: the numbers of an old copy soon grow beyond those that were seen."""
        self._went_back = f"etcd has gone back, {what}: {_ADVICE}"
        return WentBack(self._went_back)
