"""Compares what mqadmin printed for two clusters, after removing what must differ: addresses, ids, times, versions."""

from __future__ import annotations

import re

from .mqadmin_cluster import Answer, Transcript

_PATTERNS = (
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([,.:]\d{3})?(Z|[+-]\d\d:?\d\d)?", "TIME"),
    (r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d UTC \d{4}", "TIME"),
    (r"\b1[78]\d{11}\b", "MILLISECONDS"),
    (r"\b[0-9A-F]{32,}\b", "ID"),
    (r"\bV\d_\d+_\d+(_\w+)?\b", "VERSION"),
    (r"\d+(\.\d+){3}@[\w#.]+", "CLIENT"),
    (r"\d+(\.\d+){3}:\d+", "ADDRESS"),
    (r"\b\d+(\.\d+)?( ?ms|MS| TPS|tps)\b", "FIGURE"),
    (r"TPS: \d+\.\d+", "TPS: FIGURE"),
    (r"(PlainAccessConfig)@[0-9a-f]+", r"\1"),
    (r"\b(CLUSTERING|BROADCASTING)\s+\d+\s+(\d+)", r"\1 FIGURE \2"),
    (r"https?://rocketmq\.apache\.org/[\w/]+", "DOCUMENTATION"),
)

# Rates and delays are true at one moment only; a sent message goes to any queue; the number of all topics, among them
# those of the system, is for topicList to compare; logs of two makes have different lengths.
_FIGURES = {
    *("statsAll", "checkMsgSendRT", "sendMsgStatus", "clusterList", "sendMessage"),
    *("wipeWritePerm", "addWritePerm", "haStatus"),
}

# Tables of settings and figures by name. Only the names can be compared: the values are about the machine.
_NAMES_ONLY = {"brokerStatus"}


def differences(ours: Answer, theirs: Answer, values: tuple[Transcript, Transcript]) -> list[str]:
    """The lines that only one of the two has, ours with a minus, theirs with a plus."""
    mine = normal(ours, values[0])
    other = normal(theirs, values[1])
    lines = [f"- {line}" for line in _without(mine, other)]
    return lines + [f"+ {line}" for line in _without(other, mine)]


def normal(answer: Answer, transcript: Transcript) -> list[str]:
    """The lines of an answer in a form that another cluster would give, too. Their order is that of a hash table."""
    text = answer.text
    for name, value in sorted(transcript.values.items(), key=lambda item: -len(item[1])):
        if name not in ("cluster", "name"):
            text = text.replace(value, name.upper())
    for pattern, word in _PATTERNS:
        text = re.sub(pattern, word, text)
    if answer.step.command in _FIGURES:
        text = re.sub(r"\b\d+(\.\d+)?\b", "N", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if answer.step.command in _NAMES_ONLY:
        lines = [line.partition(" :")[0].partition(":")[0] for line in lines]
    if answer.step.command == "consumerProgress":
        # A new group gets its first position in its own queue some time later.
        lines = [line for line in lines if not line.startswith("%RETRY%")]
    # Clients of the tool itself, of this command or of one before it.
    lines = [line for line in lines if "(CLIENT_INNER_PRODUCER)" not in line]
    # Stack traces say where in the tool, and that is the same tool.
    return sorted(line for line in lines if line and not line.startswith("at "))


def _without(lines: list[str], others: list[str]) -> list[str]:
    rest = list(others)
    missing = []
    for line in lines:
        if line in rest:
            rest.remove(line)
        else:
            missing.append(line)
    return missing
