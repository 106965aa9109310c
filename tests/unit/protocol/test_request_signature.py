"""The request signature, against vectors that RocketMQ's own classes confirmed."""

from __future__ import annotations

import pytest

from cometmq.protocol import request_signature
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import PASSED_ON_MARK, Verifier, sign, signature_of

SEND = {
    "a": "PID",
    "b": "TopicTest",
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
}
SECRET = "12345678"


def signed(ext: dict[str, str], *, version: int = 409, token: str | None = None) -> Command:
    command = Command(310, ext=ext, body=b"hello", version=version)
    sign(command, "rocketmq2", SECRET, token)
    return command


def test_signature_equals_that_of_the_java_client() -> None:
    command = signed(SEND)

    assert command.ext is not None
    assert command.ext["AccessKey"] == "rocketmq2"
    assert command.ext["Signature"] == "pE9RZ/Tt0YH6B0WIK22Ml2ueLMs="


def test_signing_leaves_the_callers_map_alone() -> None:
    ext = dict(SEND)

    signed(ext)

    assert ext == SEND


def test_body_in_parts_signs_like_the_joined_body() -> None:
    whole = signed(SEND)
    parts = Command(310, ext=dict(SEND), body_parts=[b"he", memoryview(b"llo")])

    sign(parts, "rocketmq2", SECRET)

    assert parts.ext == whole.ext


def test_token_is_signed_like_any_field() -> None:
    command = signed(SEND, token="t0")

    assert command.ext is not None
    assert command.ext["SecurityToken"] == "t0"
    assert Verifier(SECRET).is_signed(command)
    command.ext["SecurityToken"] = "t1"
    assert not Verifier(SECRET).is_signed(command)


def test_keys_are_ordered_by_utf16_unit() -> None:
    # U+1F600 is 0xD83D.. in UTF-16 and so comes before U+FF5E, though its code point is higher.
    assert signature_of({"\U0001f600": "1", "\uff5e": "2"}, b"", "s") == signature_of(
        {"a": "1", "b": "2"}, b"", "s"
    )


@pytest.mark.parametrize("change", ["value", "body", "secret", "missing"])
def test_any_change_breaks_the_signature(change: str) -> None:
    command = signed(SEND)
    assert command.ext is not None
    assert Verifier(SECRET).is_signed(command)
    secret = SECRET
    if change == "value":
        command.ext["b"] = "TopicTesu"
    elif change == "body":
        command.body = b"hellp"
    elif change == "secret":
        secret = "12345679"
    else:
        del command.ext["Signature"]

    assert not Verifier(secret).is_signed(command)


@pytest.mark.parametrize(("version", "accepted"), [(399, True), (401, False)])
def test_old_clients_add_the_unique_key_query_unsigned(version: int, accepted: bool) -> None:
    command = signed({"topic": "T"}, version=version)
    assert command.ext is not None
    command.ext["_UNIQUE_KEY_QUERY"] = "true"

    assert Verifier(SECRET).is_signed(command) is accepted


def test_zone_fields_may_be_unsigned() -> None:
    command = signed({"topic": "T"})
    assert command.ext is not None
    command.ext["__ZONE_NAME"] = "z"
    command.ext["__ZONE_MODE"] = "m"

    assert Verifier(SECRET).is_signed(command)


def test_signature_that_is_not_ascii_is_simply_wrong() -> None:
    assert not Verifier(SECRET).is_signed(Command(310, ext={"Signature": "ü"}))


def test_a_verifier_makes_what_hmac_makes_for_keys_of_any_length() -> None:
    for secret in ("s", "x" * 64, "x" * 65, "x" * 500, "ü\U0001f600"):
        command = Command(310, ext={"b": "T", "a": "ü"}, body=b"body")
        sign(command, "name", secret)
        assert Verifier(secret).is_signed(command)
        assert not Verifier(secret + "x").is_signed(command)


def test_what_is_left_out_for_old_clients_is_not_left_out_for_others() -> None:
    verifier = Verifier(SECRET)
    old = Command(12, ext={"a": "1"}, version=399)
    sign(old, "name", SECRET)
    assert old.ext is not None
    old.ext["_UNIQUE_KEY_QUERY"] = "true"
    assert verifier.is_signed(old)
    new = Command(12, ext=dict(old.ext), version=409)
    assert not verifier.is_signed(new)
    # The other way round, and once more: what was sorted before must not be mistaken.
    assert verifier.is_signed(old)
    assert not verifier.is_signed(new)


def test_a_request_that_was_passed_on_keeps_its_signature() -> None:
    command = Command(310, ext={"b": "T"})
    sign(command, "name", SECRET)
    assert command.ext is not None
    command.ext[PASSED_ON_MARK] = "1"
    assert Verifier(SECRET).is_signed(command)
    command.ext["another"] = "1"
    assert not Verifier(SECRET).is_signed(command)


def test_orders_of_fields_are_bounded_and_no_repr_shows_the_secret() -> None:
    verifier = Verifier("hush-hush")
    for number in range(2000):
        command = Command(310, ext={f"field{number}": "1"})
        sign(command, "name", "hush-hush")
        assert verifier.is_signed(command)
        long = Command(310, ext={f"{number}" + "x" * 1000: "1"})
        sign(long, "name", "hush-hush")
        assert verifier.is_signed(long)
    assert len(request_signature._orders) <= 1024
    assert all(len(str(keys)) < 1000 for keys in request_signature._orders)
    assert "hush" not in repr(verifier)
