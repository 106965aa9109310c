"""Builds the image and runs its servers: ``python -m tests.deploy.image_trial WORK``, in a mount namespace of its own.

Exit code 77, as test harnesses have it: this machine cannot; the reason is on standard error.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.dockerfile import BuildFailed, CannotBuild, Stage, build

ROOT = Path(__file__).parents[2]
CANNOT = 77
SECONDS_MAX = 60.0
_NEW_NETWORK = 0x40000000
SETTINGS = {"bindAddress": "127.0.0.1", "metricsExporterType": "PROM"}


def main(work: str) -> None:
    try:
        stage = build(ROOT, Path(work))
    except (CannotBuild, BuildFailed) as error:
        print(error, file=sys.stderr)
        raise SystemExit(CANNOT if isinstance(error, CannotBuild) else 1) from None
    _leave_network()
    print("user", said(stage, "id", "-u"))
    print("home", said(stage, "pwd"))
    print("runs", said(stage, "cometmq", "--version").rpartition("(")[2].rstrip(")"))
    print("no pip", said(stage, "sh", "-c", "python -m pip --version 2>&1 || true"))
    has_monitor = said(stage, "sh", "-c", "ls /opt/cometmq/lib/python3*/site-packages/cometmq")
    with server(stage, "namesrv"), server(stage, "broker", namesrvAddr="127.0.0.1:9876"):
        until(stage, "echo hello | cometmq produce -q -t Greetings")
        print(
            "consumed", said(stage, "cometmq", "consume", "-q", "-t", "Greetings", "--count", "1")
        )
        print("store of", said(stage, "stat", "-c", "%u", "/var/lib/cometmq/store/commitlog"))
        if "monitor" in has_monitor.split():
            print("health", run(stage, *stage.entry, "health").returncode)
            print("health of nobody", run(stage, *stage.entry, "health", port="1").returncode)


@contextmanager
def server(stage: Stage, kind: str, **settings: str) -> Iterator[None]:
    """Started by the image's entry point with settings of the environment; ended as ``docker stop`` does it."""
    values = {**SETTINGS, **settings}
    if kind == "namesrv":
        # Two servers share a network here, which containers do not.
        values["metricsPromExporterPort"] = "5558"
    extra = {f"COMETMQ_SET_{key}": value for key, value in values.items()}
    if not (ROOT / "src/cometmq/monitor").exists():
        extra = {key: value for key, value in extra.items() if "metrics" not in key}
    process = subprocess.Popen(stage.command(*stage.entry, kind, extra=extra))
    try:
        yield
    finally:
        process.terminate()
        print(kind, "ended with", process.wait(SECONDS_MAX))


def until(stage: Stage, command: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while (done := run(stage, "sh", "-c", command)).returncode:
        if time.monotonic() > deadline:
            raise SystemExit(f"{command}: {done.stderr}")
        time.sleep(0.2)


def said(stage: Stage, *command: str) -> str:
    done = run(stage, *command)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout.strip()


def run(stage: Stage, *command: str, port: str = "") -> subprocess.CompletedProcess[str]:
    extra = {"COMETMQ_HEALTH_PORT": port} if port else {}
    return subprocess.run(
        stage.command(*command, extra=extra),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def _leave_network() -> None:
    """What the servers do from now on stays among themselves, on the usual ports."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK):
        print(f"no network of its own: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        raise SystemExit(CANNOT)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
