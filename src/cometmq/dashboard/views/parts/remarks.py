"""What answers say in a sentence, in English: by codes, for which the page has words in each of its languages.

A test compares both tables.
"""

from __future__ import annotations

from typing import Any, Final

from cometmq.dashboard.bodies.common import Remark

REMARKS: Final = {
    # Searches that stopped, and what was left out.
    "search_stopped": "stopped after {scanned} messages; go on with the cursor, or narrow the search",
    "topics_left": "looked in the {asked} topics written to last; {left} more were not asked",
    "topics_failed": "{topics} topics could not be asked: {problem}",
    "letters_left": "stopped after {scanned} dead letters; there are older ones",
    "newest_only": "only the newest {scanned} messages of {topic} were looked at",
    "more_wait": "{left} more wait",
    "reports_unreadable": "reports that cannot be read: {reports}",
    # What a change left out, or a server said to it.
    "newest_resent": "the newest {letters} were resent; there are older ones",
    "resend_stopped": "stopped after {letters}, because it took too long; {left} are left",
    "server_said": "{words}",
    # Why a message is a dead letter.
    "retries_used_up": "given up, attempts: {attempts}",
    "not_retried": "given up without a retry",
    # The way of a message.
    "stored_at": "stored by {server} in queue {queue_id} at offset {offset}",
    "was_sent": "sent",
    "send_failed": "the send failed",
    "transaction_ended": "transaction ended: {state}",
    "was_consumed": "consumed",
    "consumed_on_retry": "consumed, retry {retry}",
    "listener_failed": "the listener failed ({result})",
    "listener_failed_on_retry": "the listener failed ({result}), retry {retry}",
    "listener_open": "given to a listener; no end was reported",
    "listener_open_on_retry": "given to a listener, retry {retry}; no end was reported",
    "retry_stored": "stored for retry {retry}",
    "given_up": "given up, attempts: {attempts}",
    "by_position": "{state}",
    "by_position_because": "{state}: {problem}",
    # What is not known about it.
    "groups_cut": "only {asked} of {groups} groups were asked",
    "groups_silent": "{brokers} brokers did not say who consumes the topic",
    "groups_unknown": "who consumes the topic is not known: {problem}",
    "no_traces": "there is no trace topic: clients report nothing",
    "traces_unread": "traces could not be read: {problem}",
    "positions_unknown": "positions of groups are not known: {problem}",
}


def remark(code: str, **params: Any) -> Remark:
    return Remark(code=code, params=params, text=REMARKS[code].format(**params))
