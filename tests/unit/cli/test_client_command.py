"""What the commands around the client have in common."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cometmq.base.errors import UsageError
from cometmq.cli.client_command import DEFAULT_NAME_SERVER, client_config, exit_codes


def test_a_command_leaves_logging_and_signals_as_they_were() -> None:
    logger = logging.getLogger("cometmq")
    before = (logger.level, signal.getsignal(signal.SIGTERM))
    with pytest.raises(SystemExit), exit_codes("cometmq"):
        raise UsageError("no such thing")
    assert (logger.level, signal.getsignal(signal.SIGTERM)) == before


def test_settings_come_from_options_then_variables_then_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COMETMQ_NAMESRV_ADDR", "NAMESRV_ADDR", "COMETMQ_CLIENT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    assert client_config(None, None).name_servers == DEFAULT_NAME_SERVER
    monkeypatch.setenv("NAMESRV_ADDR", "plain:1")
    assert client_config(None, None).name_servers == "plain:1"
    file = tmp_path / "client.conf"
    file.write_text("rocketmq.namesrv.addr=file:1\nsendMsgTimeout=5000\n")
    assert client_config(None, str(file)).name_servers == "file:1"
    monkeypatch.setenv("COMETMQ_NAMESRV_ADDR", "variable:1")
    assert client_config(None, str(file)).name_servers == "variable:1"
    assert client_config("option:1", str(file)).name_servers == "option:1"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = (
        "from cometmq.cli.client_command import exit_codes\n"
        "with exit_codes('x'):\n"
        "    for _ in range(100_000):\n"
        "        print('line')\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"line\n"
    writer.stdout.close()
    assert writer.stderr is not None
    assert writer.stderr.read() == b""
    assert writer.wait(timeout=60) == 1
    writer.stderr.close()
