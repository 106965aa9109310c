"""What a Java controller, two Java brokers and a script said to each other, to be said to our controller.

The recording (``tests/golden/ha/controller-5.5.0.jsonl``) leaves out heartbeats and what brokers did between the
parts. Those are said here as the brokers do, so that the state is that of the recording at each recorded request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from cometmq.protocol.command import Command
from cometmq.protocol.frame import decode_bytes

GOLDEN = Path(__file__).parent / "golden" / "ha" / "controller-5.5.0.jsonl"
BROKERS = {1: "127.0.0.1:45230", 2: "127.0.0.1:45250"}
CONTROLLER = "127.0.0.1:45210"
SCRIPT = 0


class Stage(Protocol):
    @property
    def addresses(self) -> Mapping[str, str]:
        """Real ones by recorded ones."""
        ...

    async def ask(self, speaker: int, command: Command) -> Command: ...

    async def beat(self, speaker: int, command: Command) -> None:
        """Send it one-way. What the speaker asks next is answered after it."""
        ...

    async def kill(self, speaker: int) -> None: ...

    async def notice(self, listener: int) -> Command:
        """The next request from the controller to a broker."""
        ...


def recorded() -> dict[int, dict[str, Command]]:
    pairs: dict[int, dict[str, Command]] = {}
    for line in GOLDEN.read_text().splitlines():
        entry = json.loads(line)
        command = decode_bytes(bytes.fromhex(entry["frame_hex"]))
        pairs.setdefault(entry["pair"], {})[entry["direction"]] = command
    return pairs


class Conversation:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._pairs = recorded()

    async def play(self) -> None:
        await self.first_broker_becomes_master()
        await self.second_broker_joins()
        await self.master_is_killed()
        await self.masters_change_back_and_forth()
        await self.script_asks_for_refusals()

    async def first_broker_becomes_master(self) -> None:
        await self.says(1, 1, 2, 3, 4)
        await self.beats(1)
        await self.says(1, 5)
        await self.is_told(1, 7)
        await self.beats(1, epoch=1)
        await self.says(1, 10, 11)
        await self.says(SCRIPT, 16, 17)
        await self.says(1, 19)

    async def second_broker_joins(self) -> None:
        await self.says(2, 51, 52, 53)
        await self.beats(2)
        await self.says(1, 69)
        await self.says(SCRIPT, 98, 100)

    async def master_is_killed(self) -> None:
        await self.beats(2, epoch=1, max_offset=4160)
        await self._stage.kill(1)
        await self.is_told(2, 174)
        await self.starts_again(1)
        await self.says(2, 228)

    async def masters_change_back_and_forth(self) -> None:
        await self.beats(1, epoch=2, max_offset=45408)
        await self._stage.kill(2)
        await self._stage.notice(1)
        await self.starts_again(2)
        await self.alters(1, epoch=3, members=[1, 2], set_epoch=5)
        await self.says(SCRIPT, 531, 534)
        for broker in BROKERS:
            await self._stage.notice(broker)
        await self.says(1, 537)

    async def script_asks_for_refusals(self) -> None:
        await self.says(SCRIPT, 547, 548, 551, 556, 563, 564, 567)
        await self.alters(2, epoch=4, members=[1, 2], set_epoch=7)
        await self.says(SCRIPT, 637)

    # -- one line each

    async def says(self, speaker: int, *numbers: int) -> None:
        """Requests as recorded; the reply must be the recorded one."""
        for number in numbers:
            pair = self._pairs[number]
            reply = await self._stage.ask(speaker, self.here(pair["request"]))
            assert plain(reply) == plain(self.here(pair["response"])), number

    async def is_told(self, listener: int, number: int) -> None:
        """A notice as recorded."""
        notice = await self._stage.notice(listener)
        wanted = self.here(self._pairs[number]["request"])
        assert notice.is_oneway
        assert plain(notice) == plain(wanted), number

    async def beats(self, broker: int, *, epoch: int = -1, max_offset: int = 0) -> None:
        beat = self.here(self._pairs[6]["request"])
        ext = {
            **(beat.ext or {}),
            "brokerId": str(broker),
            "brokerAddr": self._stage.addresses[BROKERS[broker]],
            "epoch": str(epoch),
            "maxOffset": str(max_offset),
        }
        await self._stage.beat(broker, Command(code=904, ext=ext))

    async def starts_again(self, broker: int) -> None:
        ext = {
            "clusterName": "HaCluster",
            "brokerName": "bk",
            "brokerId": str(broker),
            "brokerAddress": self._stage.addresses[BROKERS[broker]],
        }
        reply = await self._stage.ask(broker, Command(code=1003, ext=ext))
        assert (reply.ext or {})["masterBrokerId"] == str(3 - broker)
        await self.beats(broker)

    async def alters(self, master: int, *, epoch: int, members: list[int], set_epoch: int) -> None:
        ext = {"brokerName": "bk", "masterBrokerId": str(master), "masterEpoch": str(epoch)}
        body = {"syncStateSet": members, "syncStateSetEpoch": set_epoch}
        reply = await self._stage.ask(
            master, Command(code=1001, ext=ext, body=json.dumps(body).encode())
        )
        assert (reply.code, reply.ext) == (0, {"newSyncStateSetEpoch": str(set_epoch + 1)})

    def here(self, command: Command) -> Command:
        """With the addresses of this stage."""

        def moved(text: str) -> str:
            for recorded_one, real in self._stage.addresses.items():
                text = text.replace(recorded_one, real)
            return text

        ext = command.ext
        return Command(
            code=command.code,
            ext=None if ext is None else {key: moved(value) for key, value in ext.items()},
            body=moved(bytes(command.body).decode()).encode(),
            remark=command.remark,
            opaque=command.opaque,
            flag=command.flag,
        )


def plain(command: Command) -> dict[str, Any]:
    return {
        "code": command.code,
        "remark": command.remark,
        "ext": command.ext or {},
        "body": bytes(command.body),
    }
