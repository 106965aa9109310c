"""``cometmq produce`` and ``cometmq consume`` as processes, with real pipes and a real cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.testing.cluster_view import ClusterView

COMMAND = [sys.executable, "-m", "cometmq.cli"]
SECONDS_MAX = 60.0

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def run(cometmq_cluster: ClusterView) -> Run:
    def run(
        *words: str, given: bytes = b"", name_servers: str | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "NAMESRV_ADDR": name_servers or cometmq_cluster.name_servers}
        return subprocess.run(
            [*COMMAND, *words],
            input=given,
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
            env=environment,
        )

    return run


@pytest.fixture
def topic(cometmq_cluster: ClusterView) -> str:
    return cometmq_cluster.create_topic(queues=2)


def lines(result: subprocess.CompletedProcess[bytes]) -> list[bytes]:
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_lines_go_in_and_come_out(run: Run, topic: str) -> None:
    sent = run("produce", "-t", topic, "--ids", given=b"one\n\ntwo\nthree")
    assert (sent.returncode, sent.stderr) == (0, b"3 messages sent\n")
    assert len(set(sent.stdout.split())) == 3
    read = run("consume", "-t", topic)
    assert sorted(lines(read)) == [b"one", b"three", b"two"]
    assert read.stderr == b"3 messages read\n"


def test_batches_keep_every_line_and_their_order(run: Run, topic: str) -> None:
    count = 5000
    given = b"".join(b"%d\n" % number for number in range(count))
    sent = run("produce", "-t", topic, "--batch", "200", "--ids", given=given)
    assert len(set(sent.stdout.split())) == count, sent.stderr
    read = [json.loads(line) for line in lines(run("consume", "-t", topic, "--json"))]
    assert sorted(int(each["body"]) for each in read) == list(range(count))
    for queue in (0, 1):
        numbers = [int(each["body"]) for each in read if each["queue"] == queue]
        assert numbers == sorted(numbers)


def test_json_lines_carry_everything_from_topic_to_topic(
    run: Run, topic: str, cometmq_cluster: ClusterView
) -> None:
    other = cometmq_cluster.create_topic("other", queues=1)
    wanted: list[dict[str, Any]] = [
        {"body": "Bücher\nzwei", "tags": "paid", "keys": ["o-1", "o-2"], "properties": {"a": "5"}},
        {"body_base64": b64encode(b"\x00\xff\n").decode()},
    ]
    given = b"".join(json.dumps(each).encode() + b"\n" for each in wanted)
    assert run("produce", "-t", topic, "--json", "--batch", "10", given=given).returncode == 0
    first = run("consume", "-t", topic, "--json")
    assert run("produce", "-t", other, "--json", given=first.stdout).returncode == 0
    read = [json.loads(line) for line in lines(run("consume", "-t", other, "--json"))]
    found = [
        {name: each[name] for name in want}
        for want in wanted
        for each in read
        if want.keys() <= each.keys()
    ]
    assert found == wanted
    assert {each["topic"] for each in read} == {other}


def test_options_say_what_lines_do_not(run: Run, topic: str) -> None:
    body = b64encode(b"\x00\n\xff")
    words = ["--tags", "a", "--keys", "k-1", "--keys", "k-2", "--property", "n=6", "--base64"]
    assert run("produce", "-t", topic, *words, "--sharding-key", "s", given=body).returncode == 0
    assert run("produce", "-t", topic, "--tags", "b", given=b"other").returncode == 0
    [read] = [
        json.loads(line) for line in lines(run("consume", "-t", topic, "--tags", "a", "--json"))
    ]
    assert (read["keys"], read["properties"], read["sharding_key"]) == (
        ["k-1", "k-2"],
        {"n": "6"},
        "s",
    )
    assert lines(run("consume", "-t", topic, "--tags", "a", "--base64")) == [body]
    assert lines(run("consume", "-t", topic, "--sql", "n > 5", "--base64")) == [body]
    assert lines(run("consume", "-t", topic, "--sql", "n > 6")) == []
    assert lines(run("consume", "-t", topic, "--tags", "b")) == [b"other"]


def test_where_to_start_and_when_to_stop(run: Run, topic: str) -> None:
    run("produce", "-t", topic, "--sharding-key", "s", given=b"1\n2\n")
    time.sleep(0.05)
    between = int(time.time() * 1000)
    run("produce", "-t", topic, "--sharding-key", "s", "--count", "2", given=b"3\n4\n5\n")
    assert lines(run("consume", "-t", topic)) == [b"1", b"2", b"3", b"4"]
    assert lines(run("consume", "-t", topic, "--count", "3")) == [b"1", b"2", b"3"]
    assert lines(run("consume", "-t", topic, "--from", "last")) == []
    assert lines(run("consume", "-t", topic, "--from", str(between))) == [b"3", b"4"]
    assert lines(run("consume", "-t", topic, "--from", "2020-01-31T00:00:00"))[0] == b"1"


def test_a_group_goes_on_where_it_was(run: Run, topic: str, cometmq_cluster: ClusterView) -> None:
    words = ["consume", "-t", topic, "--group", cometmq_cluster.group()]
    run("produce", "-t", topic, "--sharding-key", "s", given=b"1\n2\n3\n4\n5\n")
    assert lines(run(*words, "--count", "2")) == [b"1", b"2"]
    assert lines(run(*words)) == [b"3", b"4", b"5"]
    assert lines(run(*words)) == []
    assert lines(run("consume", "-t", topic)) == [b"1", b"2", b"3", b"4", b"5"]


def test_following_waits_for_new_messages_until_it_is_told_to_end(
    run: Run, topic: str, cometmq_cluster: ClusterView
) -> None:
    group = cometmq_cluster.group()
    words = ["consume", "-t", topic, "--group", group, "--follow"]
    environment = {**os.environ, "NAMESRV_ADDR": cometmq_cluster.name_servers}
    run("produce", "-t", topic, given=b"before\n")
    with subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"before\n"
        run("produce", "-t", topic, given=b"after\n")
        assert child.stdout.readline() == b"after\n"
        child.send_signal(signal.SIGTERM)
        _, told = child.communicate(timeout=SECONDS_MAX)
        assert (child.returncode, told) == (0, b"2 messages read\n")
    assert lines(run("consume", "-t", topic, "--group", group)) == []


def test_lines_that_come_slowly_are_sent_at_once_even_with_batches(
    run: Run, topic: str, cometmq_cluster: ClusterView
) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": cometmq_cluster.name_servers}
    with subprocess.Popen(
        [*COMMAND, "produce", "-t", topic, "--batch", "100", "--ids"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        bufsize=0,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for body in (b"one\n", b"two\n"):
            child.stdin.write(body)
            assert child.stdout.readline()
        child.stdin.close()
        assert child.wait(SECONDS_MAX) == 0


def test_a_reader_that_goes_away_is_no_error(
    topic: str, run: Run, cometmq_cluster: ClusterView
) -> None:
    run("produce", "-t", topic, "--batch", "500", given=b"x" * 500 + b"\n" + b"line\n" * 50_000)
    environment = {**os.environ, "NAMESRV_ADDR": cometmq_cluster.name_servers}
    with subprocess.Popen(
        [*COMMAND, "consume", "-t", topic, "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert (child.stderr.read(), child.wait(SECONDS_MAX)) == (b"", 0)


@pytest.mark.parametrize(
    ("words", "given", "code", "complaint"),
    [
        (["produce"], b"", 2, "Missing option '-t'"),
        (["produce", "-t", "no topic"], b"x", 2, "line 1: "),
        (
            ["produce", "-t", "TOPIC", "--json"],
            b'{"body": "x"}\noops\n',
            2,
            "line 2: expected a JSON",
        ),
        (["produce", "-t", "TOPIC", "--base64"], b"?", 2, "line 1: expected base64"),
        (["produce", "-t", "TOPIC", "--property", "x"], b"x", 2, "NAME=VALUE"),
        (["produce", "-t", "TOPIC", "-n", "nowhere"], b"x", 2, "nowhere"),
        (
            ["produce", "-t", "TOPIC", "-n", "127.0.0.1:1"],
            b"x",
            1,
            "line 1: no name server answered",
        ),
        (["consume", "-t", "TOPIC", "-n", "127.0.0.1:1"], b"", 1, "no name server answered"),
        (["consume", "-t", "not-there"], b"", 1, "create the topic, or check its spelling"),
        (["consume", "-t", "TOPIC", "--from", "yesterday"], b"", 2, "--from takes first, last"),
        (["consume", "-t", "TOPIC", "--sql", "a >"], b"", 2, "at character 4: expected a value"),
        (
            ["consume", "-t", "TOPIC", "--sql", "a > 1", "--tags", "a"],
            b"",
            2,
            "either --tags or --sql",
        ),
    ],
)
def test_a_mistake_is_told_in_a_line(
    run: Run, topic: str, words: list[str], given: bytes, code: int, complaint: str
) -> None:
    result = run(*[topic if word == "TOPIC" else word for word in words], given=given)
    text = result.stderr.decode()
    assert result.returncode == code, text
    assert complaint in text
    assert "Traceback" not in text


def test_what_came_before_a_bad_line_is_stored(run: Run, topic: str) -> None:
    given = b'{"body": "1"}\n{"body": "2"}\n{"body": 3}\n{"body": "4"}\n'
    result = run("produce", "-t", topic, "--json", "--batch", "10", given=given)
    assert result.returncode == 2
    assert b"2 messages sent" in result.stderr
    assert sorted(lines(run("consume", "-t", topic))) == [b"1", b"2"]


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_the_help_names_every_option_and_gives_examples(run: Run, command: str) -> None:
    text = run(command, "--help").stdout.decode()
    for word in ("--topic", "--name-server", "NAMESRV_ADDR", "--json", "Examples:", "Exit code:"):
        assert word in text
