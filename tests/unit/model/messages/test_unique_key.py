from __future__ import annotations

from cometmq.model.messages.unique_key import UniqueKeys

MONTHS = [(0, 1000), (1000, 5000)]


class Months:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, now_ms: int) -> tuple[int, int]:
        self.asked.append(now_ms)
        return next((begin, end) for begin, end in MONTHS if begin <= now_ms < end)


def _keys(address: bytes, months: Months) -> UniqueKeys:
    return UniqueKeys(address=address, process_id=70_000, instance_hash=-2, month_of=months)


def test_layout() -> None:
    keys = _keys(bytes((10, 0, 0, 1)), Months())
    # Address, pid of two bytes, hash of four, time of four, counter of two.
    assert keys.next(1300) == "0A000001" + "1170" + "FFFFFFFE" + "0000012C" + "0000"
    assert keys.next(1301) == "0A000001" + "1170" + "FFFFFFFE" + "0000012D" + "0001"


def test_an_ipv6_address_makes_it_longer() -> None:
    assert len(_keys(bytes(range(16)), Months()).next(5)) == 56


def test_the_month_is_looked_up_only_when_it_changes() -> None:
    months = Months()
    keys = _keys(bytes(4), months)
    times = [5, 999, 6, 1000, 4999, 1200, 10]
    ends = [keys.next(now_ms)[20:28] for now_ms in times]
    assert ends == [f"{value:08X}" for value in (5, 999, 6, 0, 3999, 200, 10)]
    # The last one: the clock was set back into the month before.
    assert months.asked == [5, 1000, 10]


def test_the_counter_goes_round() -> None:
    keys = _keys(bytes(4), Months())
    made = [keys.next(5) for _ in range(65_537)]
    assert len(set(made)) == 65_536
    assert made[0] == made[-1]
