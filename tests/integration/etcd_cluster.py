"""Real etcd members as processes on free ports. Tests that need them are skipped if the machine has no etcd."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import wait_until
from tests.integration.commands import free_port

needs_etcd = pytest.mark.skipif(
    shutil.which("etcd") is None, reason="there is no etcd: tools/setup_etcd.sh installs it"
)

_ANYBODY = ssl._create_unverified_context()
"""Whether it is healthy, it may tell with any certificate."""


class EtcdMember:
    def __init__(self, name: str, directory: Path, scheme: str = "http") -> None:
        self.name = name
        self.directory = directory
        self.url = f"{scheme}://127.0.0.1:{free_port()}"
        self.peer_url = f"http://127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, cluster: str, *flags: str) -> None:
        assert self._process is None
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory.parent / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "etcd",
                    *("--name", self.name),
                    *("--data-dir", str(self.directory)),
                    *("--listen-client-urls", self.url),
                    *("--advertise-client-urls", self.url),
                    *("--listen-peer-urls", self.peer_url),
                    *("--initial-advertise-peer-urls", self.peer_url),
                    *("--initial-cluster", cluster),
                    # The tests are about who decides, not about disks.
                    "--unsafe-no-fsync",
                    *flags,
                ],
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=1, context=_ANYBODY) as reply:
                return bool(json.load(reply)["health"] == "true")
        except (OSError, ValueError):
            return False

    def post(self, path: str, **words: Any) -> Any:
        """Ask its gateway, as an operator would."""
        request = urllib.request.Request(
            f"{self.url}/v3/{path}", json.dumps(words).encode(), {"Content-Type": "text/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error


class EtcdCluster:
    """``with`` it: started on entry, killed on exit."""

    def __init__(
        self,
        directory: Path,
        members: int = 3,
        flags: tuple[str, ...] = (),
        scheme: str = "http",
    ) -> None:
        self.directory = directory
        self.members = [
            EtcdMember(f"e{number}", directory / f"e{number}", scheme) for number in range(members)
        ]
        self.flags = flags

    @property
    def endpoints(self) -> str:
        return ";".join(member.url for member in self.members)

    def start(self) -> None:
        """Start those that do not run, and wait until all are healthy."""
        cluster = ",".join(f"{member.name}={member.peer_url}" for member in self.members)
        for member in self.members:
            if member._process is None:
                member.start(cluster, *self.flags)
        wait_until(lambda: all(member.is_healthy() for member in self.members), "a healthy etcd")

    def kill(self) -> None:
        for member in self.members:
            member.kill()

    def __enter__(self) -> EtcdCluster:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
