"""The switch between network namespaces, a process of its own: takes packets from one host's device and gives them to
another's, unless the link between the two loses, delays or cuts them.

    python -m tests.chaos.world.switch SEED

Standard input has a line of JSON for each command, standard output one for each that is done:

    {"add": ADDRESS, "device": NAME}    make a device for a host and serve it
    {"links": [[FROM, TO, is_cut, delay_ms, loss], ...]}    from now on
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import selectors
import struct
import sys
import time
from random import Random
from typing import Final

PACKET_BYTES_MAX: Final = 65_536
WAITING_MAX: Final = 20_000
"""Delayed packets; more are lost, as in a full queue of a router."""
_SET_DEVICE: Final = 0x400454CA
_WITHOUT_HEADER: Final = 0x0001 | 0x1000
_IPV4: Final = 4


class Switch:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._devices: dict[bytes, int] = {}
        self._links: dict[tuple[bytes, bytes], tuple[bool, float, float]] = {}
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._number = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)
        self._commands = b""

    def run(self) -> None:
        """Until standard input ends."""
        while True:
            pause = max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None
            for key, _ in self._selector.select(pause):
                if key.fd != 0:
                    self._take(key.fd)
                elif not self._obey():
                    return
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(self._waiting)
                _give(device, packet)

    def _obey(self) -> bool:
        data = os.read(0, 1 << 20)
        if not data:
            return False
        *lines, self._commands = (self._commands + data).split(b"\n")
        for line in lines:
            command = json.loads(line)
            if "add" in command:
                self._add(command["add"], command["device"])
            else:
                self._links = {
                    (_packed(source), _packed(target)): (bool(is_cut), delay_ms / 1000, loss)
                    for source, target, is_cut, delay_ms, loss in command["links"]
                }
            print("done", flush=True)
        return True

    def _add(self, address: str, name: str) -> None:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(device, _SET_DEVICE, struct.pack("16sH22x", name.encode(), _WITHOUT_HEADER))
        self._devices[_packed(address)] = device
        self._selector.register(device, selectors.EVENT_READ)

    def _take(self, device: int) -> None:
        for _ in range(64):
            try:
                packet = os.read(device, PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            if packet[0] >> 4 == _IPV4:
                self._pass_on(packet)

    def _pass_on(self, packet: bytes) -> None:
        source, target = packet[12:16], packet[16:20]
        device = self._devices.get(target)
        if device is None:
            return
        link = self._links.get((source, target))
        if link is None:
            _give(device, packet)
            return
        is_cut, delay, loss = link
        if is_cut or (loss and self._random.random() < loss) or len(self._waiting) >= WAITING_MAX:
            return
        if not delay:
            _give(device, packet)
            return
        self._number += 1
        heapq.heappush(self._waiting, (time.monotonic() + delay, self._number, device, packet))


def _give(device: int, packet: bytes) -> None:
    try:
        os.write(device, packet)
    except (BlockingIOError, OSError):
        # The host's device is full or down: the packet is lost, as on any network.
        return


def _packed(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


if __name__ == "__main__":
    Switch(int(sys.argv[1])).run()
