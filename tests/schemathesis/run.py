"""Schemathesis over the dashboard's API: requests made from its description, and every answer held against it.

    python -m tests.schemathesis.run [--examples 50] [--seed N]

The cluster is that of the examples, with accounts, and an administrator is logged in. Left out are the stream of
events, which has no end, and the check that all that fits the description is accepted: some rules cannot be said
there, such as which names a broker takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.integration.dashboard.shop import open_shop
from tests.integration.dashboard.test_login import ACCOUNTS
from tests.integration.dashboard.test_login import ROOT as ADMIN

from cometmq.client import ClientConfig
from cometmq.testing import cluster

ROOT: Final = Path(__file__).parents[2]
HOOKS: Final = Path(__file__).with_name("same_login.py")
TOOL: Final = ROOT / ".venv-api" / "bin" / "schemathesis"
LEFT_OUT: Final = ("positive_data_acceptance",)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=50, help="for each route")
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if not TOOL.exists():
        print("schemathesis is not installed: run `make api`", file=sys.stderr)
        return 2
    with cluster(settings=ACCOUNTS) as servers, tempfile.TemporaryDirectory() as made:
        account = Path(made) / "tools.conf"
        account.write_text(f"accessKey={ADMIN.access_key}\nsecretKey={ADMIN.secret_key}\n")
        asyncio.run(open_shop(servers.name_servers, ClientConfig(credentials=ADMIN)))
        with dashboard(servers.name_servers, account) as address:
            cookie, token = log_in(address)
            command = [
                *(str(TOOL), "run", f"{address}api/v1/openapi.json"),
                *("--header", f"X-CSRF-Token:{token}", "--header", f"Cookie:{cookie}"),
                # A stream has no end, and a log-out ends the test's own login.
                *("--exclude-operation-id", "events", "--exclude-operation-id", "log_out"),
                *("--exclude-checks", ",".join(LEFT_OUT)),
                *("--max-examples", str(given.examples)),
                *(
                    "--request-timeout",
                    "30",
                    "--continue-on-failure",
                    "--generation-database",
                    "none",
                ),
            ]
            if given.seed is not None:
                command += ("--seed", str(given.seed))
            # What it writes down goes there.
            made_here = ROOT / "build"
            made_here.mkdir(exist_ok=True)
            own = {"SCHEMATHESIS_HOOKS": str(HOOKS), "COMETMQ_OWN_ACCOUNT": ADMIN.access_key}
            environment = {**os.environ, **own}
            return subprocess.run(command, check=False, cwd=made_here, env=environment).returncode


def log_in(address: str) -> tuple[str, str]:
    """Cookie and token."""
    body = json.dumps({"name": ADMIN.access_key, "password": ADMIN.secret_key}).encode()
    request = urllib.request.Request(
        f"{address}api/v1/session", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return cookie, json.load(answer)["csrf_token"]


@contextmanager
def dashboard(name_servers: str, account: Path) -> Iterator[str]:
    """Its address."""
    command = [
        *(sys.executable, "-m", "cometmq.cli", "dashboard", "-n", name_servers, "--port", "0"),
        *("--set", "requestsPerSecond=100000", "--set", "loginsPerMinute=100000"),
        *("--client-config", str(account), "--log-level", "ERROR"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+/", line):
                yield found[0]
                return
        raise RuntimeError("the dashboard did not start")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
