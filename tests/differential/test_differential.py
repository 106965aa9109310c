"""Some seconds of ``make differential``, and that it would find something."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from tests.differential.calls import answers, calls
from tests.differential.run import Crashed, compare, pair
from tests.differential.scenario import Feed, scenario

from cometmq.native import choice
from cometmq.protocol.frame import FrameDecoder

SCENARIOS = 25
ALIKE = 5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        choice.choose(choice.AUTO) != choice.NATIVE, reason="cometmq was installed without twins"
    ),
]


def _seed() -> int:
    seed = int(os.environ.get("COMETMQ_DIFFERENTIAL_SEED") or random.randrange(1 << 31))
    print(f"COMETMQ_DIFFERENTIAL_SEED={seed}")
    return seed


def test_both_implementations_do_the_same() -> None:
    first = _seed()
    with pair() as both:
        for seed in range(first, first + SCENARIOS):
            assert both.differences(scenario(seed)) == [], seed


def test_decoders_do_the_same() -> None:
    first = _seed()
    with pair() as both:
        for seed in range(first, first + SCENARIOS):
            assert both.different_calls(calls(seed)) == [], seed


def test_decoders_read_some_and_refuse_some() -> None:
    kinds = Counter(kind for kind, _ in answers(calls(1)).found)
    assert kinds["returned"] > 10
    assert kinds["BadRecord"] > 10


def test_one_implementation_does_the_same_twice() -> None:
    """Nothing that is compared depends on the time, the process or the directory."""
    first = _seed()
    with pair(choice.PYTHON, choice.PYTHON) as both:
        for seed in range(first, first + ALIKE):
            assert both.differences(scenario(seed)) == [], seed


def test_most_requests_are_carried_out() -> None:
    """A broker that refuses everything would be alike, too."""
    with pair() as both:
        codes = [
            command.code
            for seed in range(ALIKE)
            for replies in both.outcomes(scenario(seed))[1].replies
            for data in replies.values()
            for command in FrameDecoder().feed(data)
        ]
    assert len(codes) > 500
    assert codes.count(0) > len(codes) / 2


def test_a_difference_is_found() -> None:
    asked = scenario(1)
    other = asked._replace(settings={**asked.settings, "brokerName": "another"})
    with pair(choice.PYTHON, choice.PYTHON) as both:
        assert list(compare(*both.outcomes(asked, other))) != []


def test_an_end_of_a_process_is_found() -> None:
    with pair() as both:
        impossible = scenario(1)._replace(settings={"flushDiskType": "NEVER"})
        with pytest.raises(Crashed, match="exit code 1"):
            both.differences(impossible)


def test_a_scenario_follows_from_its_seed() -> None:
    assert scenario(7) == scenario(7)
    assert scenario(7) != scenario(8)
    assert any(len(step.pieces) > 1 for step in scenario(7).steps if isinstance(step, Feed))
