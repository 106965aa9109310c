from __future__ import annotations

from cometmq.base.log_rates import (
    CAUSE_BURST,
    CAUSE_SECONDS,
    KEYS_MAX,
    PEER_BURST,
    PEER_MINUTES,
    PEER_SECONDS,
    LineRates,
    peer_of,
)


def admitted(rates: LineRates, cause: str, peer: str, times: int, now: float = 0.0) -> int:
    return sum(rates.admit(cause, peer, now) for _ in range(times))


def test_a_burst_then_one_line_at_a_time() -> None:
    rates = LineRates()
    assert admitted(rates, "closed", "10.0.0.7", 100) == PEER_BURST
    assert admitted(rates, "closed", "10.0.0.7", 100, PEER_SECONDS * 1.5) == 1
    assert admitted(rates, "closed", "10.0.0.7", 100, PEER_SECONDS * 1e6) == PEER_BURST


def test_peers_and_causes_do_not_share() -> None:
    rates = LineRates()
    admitted(rates, "closed", "10.0.0.7", 100)
    assert rates.admit("closed", "10.0.0.8", 0.0)
    assert rates.admit("refused", "10.0.0.7", 0.0)


def test_a_peer_has_a_rate_for_all_causes_together() -> None:
    rates = LineRates(lines_per_peer_max=30)
    total = sum(rates.admit(f"cause {number}", "10.0.0.7", 0.0) for number in range(100))
    assert total == 30
    assert rates.admit("cause 1", "10.0.0.8", 0.0)
    assert rates.admit("cause 1", "", 0.0), "nobody's lines are not theirs"
    later = PEER_MINUTES * 60 / 30 * 2.5
    assert sum(rates.admit(f"cause {number}", "10.0.0.7", later) for number in range(100)) == 2


def test_many_peers_together_have_a_rate_too() -> None:
    rates = LineRates()
    total = sum(rates.admit("closed", f"10.0.{n >> 8}.{n & 255}", 0.0) for n in range(1000))
    assert total == CAUSE_BURST
    later = sum(rates.admit("closed", f"10.1.0.{n}", CAUSE_SECONDS * 2.5) for n in range(100))
    assert later == 2


def test_what_was_left_out_is_told_once_by_cause() -> None:
    rates = LineRates()
    for peer in ("b", "a"):
        admitted(rates, "closed", peer, PEER_BURST + 7)
    assert rates.take_left_out() == [("closed", 14, ["a", "b"])]
    assert rates.take_left_out() == []


def test_the_table_stays_small() -> None:
    rates = LineRates()
    for number in range(3 * KEYS_MAX):
        rates.admit(f"cause {number}", "10.0.0.7", float(number) / 1000)
    assert len(rates) <= 3 * KEYS_MAX


def test_the_peer_of_a_line() -> None:
    assert peer_of("closed peer=%s reason=%s", ("10.0.0.7:12", "x")) == "10.0.0.7"
    assert peer_of("set topic=%s read=%d by=%s", ("T", 8, "[::1]:12")) == "[::1]"
    assert peer_of("at 100%% peer=%s", ("10.0.0.7:12",)) == "10.0.0.7"
    assert peer_of("cut off peer=%s", ()) == ""
    assert peer_of("nobody", ()) == ""
    assert peer_of("%(peer)s", {"peer": "x"}) == ""
