"""``cometmq top`` at a real cluster, once as lines and once on a terminal."""

from __future__ import annotations

import os
import pty
import sys

from click.testing import CliRunner
from tests.eventually import wait_until

from cometmq.cli.main import main
from cometmq.client import Message
from cometmq.client.sync import Producer
from cometmq.testing import cluster


def test_views_follow_each_other() -> None:
    with cluster(slaves=1) as servers:
        with Producer("shop", name_servers=servers.name_servers) as producer:
            producer.send(Message(topic="Orders", body=b"17"))
        words = ["top", "-n", servers.name_servers, "--count", "2", "--interval", "0.2"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert done.output.count("BROKER") == 2
        assert servers.masters[0].address in done.output
        assert " 1/1 " in done.output
        assert "\x1b" not in done.output


def test_a_name_server_that_is_not_there() -> None:
    done = CliRunner().invoke(main, ["top", "-n", "127.0.0.1:1", "--count", "1"])
    assert done.exit_code == 1
    assert "no name server answered" in done.stderr


def test_a_terminal_is_as_it_was_afterwards() -> None:
    with cluster() as servers:
        child, terminal = pty.fork()
        if child == 0:
            command = "from cometmq.cli.main import main; main()"
            words = ["top", "-n", servers.name_servers, "--count", "1"]
            os.execv(sys.executable, [sys.executable, "-c", command, *words])
        shown = b""

        def has_ended() -> bool:
            nonlocal shown
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                # What Linux says when nobody is left on the other side.
                return True
            return False

        wait_until(has_ended, lambda: shown.decode(errors="replace"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shown.startswith(b"\x1b[?1049h")
    assert b"BROKER" in shown
    assert shown.rstrip().endswith(b"\x1b[?1049l")
