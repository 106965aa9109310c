"""The page on security, worked through as printed: a shell, two servers, and another host in a network namespace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.docs.page_steps import ROOT
from tests.docs.reader import HERE

PAGE: Final = (ROOT / "docs" / "howto" / "security.md").read_text()
PAGE_DIRECTORY: Final = "/srv/queue"

# A network of its own, so that the page's ports and addresses are free, and a place for the names of namespaces.
_ALONE: Final = (
    "mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && exec bash"
)
_BLOCK: Final = re.compile(
    r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
_SECRET: Final = re.compile(r"^secret +(\S+)", re.MULTILINE)
_END: Final = "-- end of block --"


def _why_not() -> str:
    """Why this machine cannot have a second host; empty if it can."""
    try:
        done = subprocess.run(
            ["unshare", "--net", "--mount", "bash", "-c", f"{_ALONE} -c 'ip netns add probe'"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


class Shell:
    """A bash that is given one block after the other."""

    def __init__(self, directory: Path) -> None:
        environment = {**os.environ, "PATH": f"{HERE.parent}:{os.environ['PATH']}"}
        for name in ("NAMESRV_ADDR", "COMETMQ_SECRET_KEY", "COMETMQ_CLIENT_CONFIG"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "bash", "-c", _ALONE],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.run("set -eo pipefail\n")

    def run(self, block: str) -> str:
        """What it prints. Raises AssertionError if a command fails."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{block}\necho '{_END}'\n")
        self.process.stdin.flush()
        printed = ""
        for line in self.process.stdout:
            if line.strip() == _END:
                return printed
            printed += line
        raise AssertionError(f"{block}\nfailed, printed\n{printed}")

    def close(self) -> None:
        """End it, and the servers that it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.mark.slow
def test_blocks_run_and_print_what_the_page_says(tmp_path: Path) -> None:
    if reason := _why_not():
        pytest.skip(f"network namespaces are not permitted here: {reason}")
    blocks: list[tuple[str, str]] = _BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```sh\n") == 9
    secret = ""
    shell = Shell(tmp_path)
    try:
        for block, expected in blocks:
            if "read -rsp" in block:
                # The reader pastes what was printed.
                first, _, rest = block.partition("\n")
                block = f"{first}\n{secret}\n{rest}"
            printed = shell.run(block).replace(str(tmp_path), PAGE_DIRECTORY)
            if found := _SECRET.search(printed):
                secret = found[1]
            assert _SECRET.sub("secret", printed) == _SECRET.sub("secret", expected), block
        assert secret
    finally:
        shell.close()
