"""Ports for tests: several runs on one machine do not take them from each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.interop.servers import claim, free_ports

ROOT = Path(__file__).parents[2]
OTHER_RUN = """
from tests.interop.servers import free_ports
print(*free_ports(0, -2, 1), flush=True)
input()
"""


def test_a_port_belongs_to_one_run_while_it_lasts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_RUN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        taken = [int(port) for port in other.stdout.readline().split()]
        assert len(taken) == 3
        assert not any(claim(port) for port in taken)
        other.communicate("\n")
    assert all(claim(port) for port in taken)


def test_nobody_gets_a_port_twice() -> None:
    ports = [port for _ in range(20) for port in free_ports(0, -2, 1)]
    assert len(set(ports)) == 60
