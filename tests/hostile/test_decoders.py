"""Some seconds of what ``make fuzz`` gives to the decoders, and that it would find something."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.hostile import hostile_server
from tests.hostile.decoders import Target, targets
from tests.hostile.in_process import fuzz, input_of
from tests.hostile.run import attack

from cometmq.access.plain import plain_files
from cometmq.base.errors import ConfigError, RemoteProtocolError
from cometmq.model.messages import batch

INPUTS = 400
SHARED = (
    *("headers", "bodies", "ha wire", "compression", "bulk pull", "registration", "tags"),
    "configuration",
)
FOUND = [("records", 780312552, 9346)]
"""Decoder, seed and number of inputs that once were a fault."""


def _seed() -> int:
    seed = int(os.environ.get("COMETMQ_HOSTILE_SEED") or random.randrange(1 << 31))
    print(f"COMETMQ_HOSTILE_SEED={seed}")
    return seed


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_a_decoder_refuses_what_it_cannot_read(target: Target) -> None:
    found = fuzz([target], _seed(), inputs=INPUTS)
    assert found.faults == []
    assert found.inputs == INPUTS
    assert found.refused < INPUTS, "not one input was read: the samples are none"


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_samples_are_read(target: Target) -> None:
    if target.name in SHARED:
        pytest.skip("its samples are of several kinds, and it reads each as all of them")
    for sample in target.samples:
        target.read(sample)


def test_an_input_follows_from_seed_decoder_and_number() -> None:
    first, second = targets()[:2]
    assert input_of(first, 7, 11) == input_of(targets()[0], 7, 11)
    made = {input_of(first, 7, 11), input_of(first, 7, 12), input_of(first, 8, 11)}
    assert len({*made, input_of(second, 7, 11)}) == 4


@pytest.mark.parametrize(("name", "seed", "number"), FOUND)
def test_what_was_a_fault_once(name: str, seed: int, number: int) -> None:
    (target,) = (one for one in targets() if one.name == name)
    assert fuzz([target], seed, inputs=1, first=number).faults == []


def test_dates_that_are_none_are_no_yaml() -> None:
    with pytest.raises(ConfigError, match="is no YAML"):
        plain_files.parse_content(b"accounts: 2001-99-99", Path("plain_acl.yml"))


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that trusts a length: the elements of a batch are cut off without a look at where they end."""

    def trusting(buffer: bytes, count_max: int) -> tuple[list[int], list[bytes], list[bytes]]:
        at, flags, bodies, texts = 0, [], [], []
        while at < len(buffer):
            size, _, _, flag, body_bytes = batch._HEAD.unpack_from(buffer, at)
            if size < 22:
                raise RemoteProtocolError("an element that has no end")
            flags.append(flag)
            bodies.append(buffer[at + 20 : at + 20 + body_bytes])
            texts.append(buffer[at + 22 + body_bytes : at + size])
            at += size
        return flags, bodies, texts

    monkeypatch.setattr("tests.hostile.decoders.decode_columns", trusting)
    (target,) = (one for one in targets() if one.name == "batch")
    found = fuzz([target], 1, inputs=2000)
    assert found.faults
    assert "struct.error" in found.faults[0] or "error" in found.faults[0]
    assert "--target 'batch' --first" in found.faults[0]


def test_a_planted_fault_of_a_server_is_found(tmp_path: Path) -> None:
    report = attack(
        1, 4000, tmp_path, scale=1, judges_time=False, broker_module="tests.hostile.planted"
    )
    (fault,) = [fault for fault in report.faults if "traceback" in fault]
    assert "ZeroDivisionError: planted" in fault


async def test_clients_survive_a_server_that_answers_wrongly() -> None:
    replies, faults = await hostile_server.work(_seed(), replies=300)
    assert faults == []
    assert replies >= 300
