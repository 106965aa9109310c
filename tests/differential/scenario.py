"""What happens to a broker in one run: bytes of several peers, cut anywhere, and time that passes. No I/O.

Everything follows from the seed, and is made before either implementation sees it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final, NamedTuple

from tests.hostile.mutations import Mutations

from cometmq.model.messages.batch import BatchElement, encode_batch
from cometmq.protocol.command import BINARY, FLAG_ONEWAY, JSON, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.protocol.request_signature import PASSED_ON_FOR, sign

PEERS: Final = 4
STEPS_MAX: Final = 30
RUN_MAX: Final = 40
TOPICS: Final = ("T0", "T1", "A-topic_with|odd%name", "T" * 127, "%RETRY%CG", "No such topic!")
TAGS: Final = ("", "A", "B", "Aa", "BB", "Ünïcode")
"""``Aa`` and ``BB`` have one hash in Java."""
ACCOUNTS: Final = {"alice": "her secret", "bob": "his secret", "root": "r" * 100}
"""With their secrets. ``bob`` may publish to few topics; ``root`` may do everything."""
SEPARATORS: Final = ("\x01", "\x02")

MACHINE_CODES: Final = frozenset({28, 30, 301, 307, 315, 317, 3000, 3001})
"""Requests whose answers tell of the process: its memory, its start, how long requests took in real time."""


class Feed(NamedTuple):
    """Pieces of bytes that a peer sends one after the other, in one turn of the loop or each in its own."""

    peer: int
    pieces: list[bytes]
    is_one_turn: bool


class Leave(NamedTuple):
    """The peer closes its connection; its next bytes open another."""

    peer: int


class Pass(NamedTuple):
    seconds: float


class Judge(NamedTuple):
    """The accounts are others from now on; those that are named are disabled."""

    disabled: tuple[str, ...]


class Restart(NamedTuple):
    """The broker stops in good order, and begins anew on its files."""


Step = Feed | Leave | Pass | Judge | Restart


class Scenario(NamedTuple):
    seed: int
    settings: dict[str, str]
    steps: list[Step]
    has_accounts: bool = False


def scenario(seed: int) -> Scenario:
    random = Random(seed)
    settings = {
        "flushDiskType": random.choice(("ASYNC_FLUSH", "ASYNC_FLUSH", "SYNC_FLUSH")),
        "autoCreateTopicEnable": random.choice(("true", "true", "false")),
        "enablePropertyFilter": "true",
        "mappedFileSizeCommitLog": random.choice(("16384", "65536", "1048576")),
        "mappedFileSizeConsumeQueue": random.choice(("200", "2000")),
        "enableConsumeQueueExt": random.choice(("false", "false", "true")),
        "mappedFileSizeConsumeQueueExt": "4096",
        "messageIndexEnable": random.choice(("true", "true", "false")),
    }
    has_accounts = random.random() < 0.4
    maker = _Frames(seed, random, has_accounts=has_accounts)
    steps: list[Step] = [
        Feed(0, [b"".join(map(maker.create_topic, ("T0", "T1")))], is_one_turn=True)
    ]
    for _ in range(random.randrange(1, STEPS_MAX)):
        chance = random.random()
        if chance < 0.85:
            steps.append(_feed(random, maker))
        elif chance < 0.87:
            steps.append(Restart())
        elif chance < 0.89 and has_accounts:
            steps.append(Judge(random.choice(((), (), ("bob",), ("alice", "bob")))))
        elif chance < 0.95:
            steps.append(Pass(random.choice((0.001, 0.1, 1.0, 5.0, 30.0))))
        else:
            steps.append(Leave(random.randrange(PEERS)))
    # So that all that is parked and delayed comes to its end.
    steps.append(Pass(40.0))
    return Scenario(seed, settings, steps, has_accounts)


def _feed(random: Random, maker: _Frames) -> Feed:
    data = maker.run()
    for _ in range(random.choice((0, 0, 0, 1, 3))):
        data += maker.run()
    how = random.random()
    if how < 0.4:
        pieces = [data]
    elif how < 0.9:
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randint(1, 6)))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    else:
        size = random.choice((1, 2, 3, 5, 7, 64))
        most = 400 * size
        pieces = [data[at : at + size] for at in range(0, min(len(data), most), size)]
        pieces.append(data[most:])
    pieces = [piece for piece in pieces if piece]
    return Feed(random.randrange(PEERS), pieces, is_one_turn=random.random() < 0.7)


class _Frames:
    """Requests as clients make them, most of them in runs of one kind, and some that no client makes."""

    def __init__(self, seed: int, random: Random, *, has_accounts: bool) -> None:
        self._random = random
        self._has_accounts = has_accounts
        self._account = "root"
        self._mutations = Mutations(seed)
        self._mutated = 0
        self._opaque = 0

    def run(self) -> bytes:
        random = self._random
        make, most = random.choices(_RUNS, _WEIGHTS)[0]
        count = random.randint(1, most)
        self._account = random.choice(("alice", "alice", "bob", "root", "eve"))
        return b"".join(make(self) for _ in range(count))

    def create_topic(self, name: str, queues: str = "4", perm: str = "6") -> bytes:
        fields = {"topic": name, "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG"}
        numbers = {"readQueueNums": queues, "writeQueueNums": queues, "perm": perm}
        return self._frame(17, fields | numbers | {"topicSysFlag": "0", "order": "false"})

    def change_topic(self) -> bytes:
        """What is known of a topic changes while messages for it are on their way."""
        random, name = self._random, self._topic()
        if random.random() < 0.1:
            return self._frame(215, {"topic": name})
        return self.create_topic(name, random.choice("1444"), random.choice("6666624"))

    # Sends.

    def send(self) -> bytes:
        return self._frame(310, self._send_fields(), self._body())

    def alike(self) -> bytes:
        """A run with the same fields, as one producer sends it."""
        fields = self._send_fields()
        size = self._random.choice((0, 1, 16, 128, 1024))
        encoding = self._random.choice((JSON, BINARY))
        return b"".join(
            self._frame(310, fields, self._random.randbytes(size), encoding=encoding)
            for _ in range(self._random.randint(1, RUN_MAX))
        )

    def send_v1(self) -> bytes:
        fields = self._send_fields()
        names = {
            **{"a": "producerGroup", "b": "topic", "c": "defaultTopic"},
            **{"d": "defaultTopicQueueNums", "e": "queueId", "f": "sysFlag"},
            **{"g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes"},
            **{"k": "unitMode", "l": "maxReconsumeTimes", "m": "batch"},
        }
        return self._frame(
            10, {names.get(key, key): value for key, value in fields.items()}, self._body()
        )

    def batch(self) -> bytes:
        random = self._random
        elements = [
            BatchElement(random.choice((0, 9)), self._body(), self._properties().encode())
            for _ in range(random.randint(0, 12))
        ]
        body = encode_batch(elements)
        if random.random() < 0.1 and body:
            at = random.randrange(len(body))
            body = body[:at] + random.randbytes(random.randrange(3)) + body[at + 1 :]
        return self._frame(
            random.choice((310, 320, 320)), self._send_fields() | {"m": "true"}, body
        )

    def batch_alike(self) -> bytes:
        """As a producer makes it: all of one form, to a topic that is there."""
        random = self._random
        form = random.choice(
            ("UNIQ_KEY\x01{}\x02WAIT\x01true\x02TAGS\x01A", "UNIQ_KEY\x01{}\x02KEYS\x01k1 k2")
        )
        size = random.choice((1, 16, 100))
        elements = [
            BatchElement(0, random.randbytes(size), form.format(f"{number:032d}").encode())
            for number in range(random.choice((1, 2, 32)))
        ]
        fields = self._send_fields() | {"m": "true", "i": "WAIT\x01true", "f": "0", "j": "0"}
        fields |= {"b": random.choice(("T0", "T1")), "e": random.choice("0123")}
        return self._frame(320, fields, encode_batch(elements), encoding=JSON)

    def _send_fields(self) -> dict[str, str]:
        random = self._random
        fields = {
            "a": random.choice(("PG", "PG2")),
            "b": self._topic(),
            "c": random.choice(("TBW102", "TBW102", "none")),
            "d": self._mostly("4", "8", "-1", "0"),
            "e": self._mostly(random.choice("0123"), "-1", "4", "99", "x", "2147483648"),
            "f": self._mostly("0", "1", "4", "8", "12", "256", "16", "-1"),
            "g": self._mostly("1700000000123", "0", "-5", "9223372036854775807"),
            "h": self._mostly("0", "9", "-2147483648"),
            "i": self._properties(),
            "j": self._mostly("0", "1", "17"),
            "k": "false",
            "m": "false",
        }
        if random.random() < 0.5:
            fields["n"] = "b49"
        if random.random() < 0.1:
            fields["l"] = "3"
        if random.random() < 0.03:
            del fields[random.choice(list(fields))]
        if random.random() < 0.02:
            fields[random.choice(("zz", "b", "e", ""))] = random.choice(("", "1", "é"))
        if random.random() < 0.05:
            # Another order than usual, as from another client.
            keys = list(fields)
            random.shuffle(keys)
            fields = {key: fields[key] for key in keys}
        return fields

    def _properties(self) -> str:
        random = self._random
        pairs = {}
        if random.random() < 0.9:
            pairs["UNIQ_KEY"] = f"7F0000010A2B18B4AAC2{random.randrange(10**12):012d}"
        if random.random() < 0.7:
            pairs["TAGS"] = random.choice(TAGS)
        if random.random() < 0.6:
            pairs["WAIT"] = random.choice(("true", "true", "false", ""))
        if random.random() < 0.3:
            pairs["KEYS"] = random.choice(("k1", "k1 k2  k3", " ", "k" * 200))
        if random.random() < 0.05:
            pairs["DELAY"] = self._mostly("1", "3", "0", "x", "99")
        if random.random() < 0.03:
            pairs["TRAN_MSG"] = "true"
            pairs["PGROUP"] = "PG"
        if random.random() < 0.03:
            pairs[random.choice(("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "__SHARDINGKEY"))] = "2"
        if random.random() < 0.2:
            pairs["a"] = str(random.randrange(20))
        if random.random() < 0.05:
            pairs["INNER_BATCH"] = "x"
        if random.random() < 0.05:
            # Names that have others in them.
            pairs[random.choice(("XKEYS", "KEYSX", "UNIQ_KEYS", "XTAGS", "AWAIT"))] = "k1 k3"
        if random.random() < 0.1:
            pairs = dict(random.sample(list(pairs.items()), len(pairs)))
        if random.random() < 0.02:
            pairs["x" * random.choice((1, 100, 30_000))] = "y" * random.choice((0, 1, 4000))
        ends = random.choice(("", SEPARATORS[1], SEPARATORS[1]))
        text = SEPARATORS[1].join(SEPARATORS[0].join(pair) for pair in pairs.items()) + ends
        if random.random() < 0.04:
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice((*SEPARATORS, "\x00", "é", "😀")) + text[at:]
        return text

    def _body(self) -> bytes:
        random = self._random
        if random.random() < 0.05:
            return random.randbytes(random.choice((0, 4000, 8191, 8192, 8193)))
        return random.randbytes(random.choice((1, 7, 16, 100, 100, 1000)))

    # Reads.

    def pull(self) -> bytes:
        random = self._random
        expression = random.choice(("*", "*", "A", "A || B", "Aa", "a > 5", "a BETWEEN 1 AND 3"))
        fields = {
            "consumerGroup": random.choice(("CG", "CG2")),
            "topic": self._topic(),
            "queueId": self._mostly(random.choice("0123"), "7", "-1"),
            "queueOffset": self._mostly(random.choice(("0", "1", "5", "30")), "1000", "-1"),
            "maxMsgNums": self._mostly(random.choice(("1", "8", "32")), "0", "-1", "5000"),
            "sysFlag": self._mostly("4", "6", "2", "5", "12", "20"),
            "commitOffset": random.choice(("0", "3")),
            "suspendTimeoutMillis": random.choice(("0", "15000", "1000")),
            "subscription": expression,
            "subVersion": random.choice(("0", "5")),
            "expressionType": "SQL92" if "a" in expression else self._mostly("TAG", "", "SQL92"),
        }
        if random.random() < 0.3:
            fields["maxMsgBytes"] = random.choice(("0", "100", "65536"))
        return self._frame(random.choice((11, 11, 11, 361)), fields)

    def pull_alike(self) -> bytes:
        """As one reader pulls, from queue to queue."""
        random = self._random
        sys_flag = random.choice("04567")
        fields = {
            "consumerGroup": random.choice(("CG", "CG2")),
            "topic": random.choice(("T0", "T0", "T1", "%RETRY%CG")),
            "queueId": "",
            "queueOffset": "",
            "maxMsgNums": random.choice(("2", "32")),
            "sysFlag": sys_flag,
            "commitOffset": "",
            "suspendTimeoutMillis": "15000",
            "subscription": random.choice(("*", "A", "a > 5")),
            "subVersion": random.choice(("0", "5", "6")),
        }
        fields["expressionType"] = "SQL92" if "a" in fields["subscription"] else "TAG"
        frames = []
        for _ in range(random.randint(2, 8)):
            fields["queueId"] = self._mostly(random.choice("0123"), "4", "99")
            fields["queueOffset"] = self._mostly(random.choice("01259"), "100", "-1", "07")
            fields["commitOffset"] = self._mostly("0", "1", "3", "-1")
            self._opaque += 1
            frames.append(encode_bytes(self._signed(Command(11, fields, opaque=self._opaque))))
        return b"".join(frames)

    def reset(self) -> bytes:
        """Somebody sets a group back."""
        random = self._random
        fields = {
            "topic": random.choice(("T0", "T1")),
            "group": "CG",
            "timestamp": random.choice(("0", "-1", "1700000000500")),
            "isForce": "true",
        }
        return self._frame(222, fields)

    def heartbeat(self) -> bytes:
        random = self._random
        subscriptions = [
            {
                "topic": topic,
                "subString": text,
                "subVersion": 5,
                "expressionType": "SQL92" if "a" in text else "TAG",
                "tagsSet": [text] if text in TAGS else [],
                "codeSet": [ord(text)] if text == "A" else [],
            }
            for topic in ("T0", "T1")
            for text in [random.choice(("*", "A", "a > 5"))]
        ]
        body = {
            "clientID": random.choice(("c1", "c2")),
            "consumerDataSet": [
                {
                    "groupName": random.choice(("CG", "CG2")),
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": random.choice(("CLUSTERING", "BROADCASTING")),
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "subscriptionDataSet": subscriptions,
                }
            ],
            "producerDataSet": [{"groupName": "PG"}],
        }
        return self._frame(34, {}, json.dumps(body).encode())

    def offset(self) -> bytes:
        random = self._random
        fields = {"consumerGroup": "CG", "topic": self._topic(), "queueId": random.choice("0123")}
        if random.random() < 0.5:
            return self._frame(14, fields)
        fields["commitOffset"] = str(random.choice((0, 1, 5, -1, 2**62)))
        return self._frame(15, fields, flag=random.choice((0, FLAG_ONEWAY)))

    def bounds(self) -> bytes:
        random = self._random
        fields = {"topic": self._topic(), "queueId": random.choice("0123"), "committed": "false"}
        return self._frame(
            random.choice((29, 30, 31, 32)) if random.random() < 0.9 else 12,
            fields | {"timestamp": "1700000000500"},
        )

    def pop(self) -> bytes:
        random = self._random
        fields = {
            "consumerGroup": "CG",
            "topic": self._topic(),
            "queueId": random.choice(("-1", "0", "1")),
            "maxMsgNums": random.choice(("1", "8", "32")),
            "invisibleTime": random.choice(("10000", "1000")),
            "pollTime": random.choice(("0", "5000")),
            "bornTime": "1700000000000",
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
            "order": "false",
        }
        return self._frame(200050, fields, encoding=JSON)

    def query(self) -> bytes:
        fields = {
            "topic": self._topic(),
            "key": self._random.choice(("k1", "k2", "k")),
            "maxNum": "32",
            "beginTimestamp": "0",
            "endTimestamp": "9223372036854775807",
        }
        return self._frame(12, fields)

    def send_back(self) -> bytes:
        fields = {
            "offset": str(self._random.choice((0, 1, 200, 5000))),
            "group": "CG",
            "delayLevel": self._random.choice(("0", "3", "-1")),
            "originMsgId": "x",
            "originTopic": "T0",
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        }
        return self._frame(36, fields)

    # What is wrong.

    def mutated(self) -> bytes:
        while True:
            self._mutated += 1
            data = self._mutations.frame(self._mutated).data
            if _code(data) not in MACHINE_CODES:
                return data

    def spoilt(self) -> bytes:
        """A send with a byte changed."""
        frame = bytearray(self.send())
        at = self._random.randrange(len(frame))
        frame[at] ^= 1 << self._random.randrange(8)
        return bytes(frame)

    def _mostly(self, usual: str, *others: str) -> str:
        return self._random.choice(others) if self._random.random() < 0.05 else usual

    def _topic(self) -> str:
        return self._random.choices(TOPICS, (300, 200, 3, 3, 1, 1))[0]

    def _frame(
        self,
        code: int,
        fields: dict[str, str],
        body: bytes = b"",
        *,
        flag: int = 0,
        encoding: int | None = None,
    ) -> bytes:
        random = self._random
        self._opaque += 1
        if random.random() < 0.02:
            flag |= FLAG_ONEWAY
        remark = "a remark" if random.random() < 0.01 else None
        language = random.choice(("JAVA", "JAVA", "GO", "PYTHON"))
        version = random.choice((435, 401, 0))
        if encoding is None:
            encoding = random.choice((JSON, JSON, BINARY)) if code < 2**15 else JSON
        opaque = self._opaque if random.random() < 0.95 else random.choice((-1, 2**31 - 1, 0))
        command = Command(code, fields, body, flag, opaque, remark, language, version, encoding)
        return encode_bytes(self._signed(command))

    def _signed(self, command: Command) -> Command:
        """In most cases as the account of the run; topics and accounts are made by one that may."""
        random = self._random
        if not self._has_accounts:
            return command
        chance = random.random()
        name = self._account if chance > 0.02 else random.choice(("alice", "bob", "root", "", "é"))
        if command.code in (17, 215):
            name = "root"
        if chance > 0.97:
            return command
        token = "a token" if chance > 0.96 else None
        sign(command, name, ACCOUNTS.get(name, "another") if chance < 0.94 else "wrong", token)
        if chance < 0.04:
            added = random.choice(("__ZONE_NAME", "_UNIQUE_KEY_QUERY", PASSED_ON_FOR, "Signature"))
            command.ext = {**(command.ext or {}), added: random.choice(("bob", "x" * 28, ""))}
        return command


_Make = Callable[[_Frames], bytes]
_TABLE: Final[tuple[tuple[int, _Make, int], ...]] = (
    (20, _Frames.send, RUN_MAX),
    (20, _Frames.alike, 2),
    (3, _Frames.send_v1, 10),
    (6, _Frames.batch, 8),
    (6, _Frames.batch_alike, 8),
    (20, _Frames.pull, 12),
    (12, _Frames.pull_alike, 3),
    (1, _Frames.reset, 1),
    (3, _Frames.heartbeat, 2),
    (4, _Frames.offset, 10),
    (2, _Frames.bounds, 6),
    (2, _Frames.pop, 3),
    (1, _Frames.query, 3),
    (1, _Frames.send_back, 3),
    (4, _Frames.mutated, 3),
    (3, _Frames.change_topic, 1),
    (2, _Frames.spoilt, 1),
)
_WEIGHTS: Final = tuple(weight for weight, *_ in _TABLE)
_RUNS: Final = tuple((make, most) for _, make, most in _TABLE)


@cache
def _codes_in_json() -> tuple[bytes, ...]:
    return tuple(f'"code":{code},'.encode() for code in MACHINE_CODES)


def _code(frame: bytes) -> int:
    """The code of a request that may be no request at all; -1 if it cannot be told."""
    header = frame[8:]
    if header[:1] == b"{":
        squeezed = header.replace(b" ", b"").replace(b"}", b",")
        return next(
            (
                code
                for code, text in zip(MACHINE_CODES, _codes_in_json(), strict=True)
                if text in squeezed
            ),
            -1,
        )
    return int.from_bytes(header[:2], "big", signed=True)
