"""``make audit``: it finds a vulnerable pin and a forbidden licence, and says when it could not ask."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tools.audit import (
    CouldNotAsk,
    Pin,
    declared_licences,
    is_allowed,
    licence_faults,
    pins_of,
    sbom,
    vulnerabilities,
)

ROOT = Path(__file__).parents[3]
DIGEST = "13b2beaad985e05e2d6407ee4c4f35590b11f8d693a258a561055cac8f64cab7"

FAULTY = "pyyaml==5.3"
"""The planted fault: a version that has a known vulnerability."""


def test_pins_are_read_from_a_lock_file() -> None:
    text = (
        f"click==8.5.1 \\\n    --hash=sha256:{DIGEST}\n"
        f"uvloop==0.23.0 ; sys_platform != 'win32' \\\n    --hash=sha256:{DIGEST} \\\n    --hash=sha256:{DIGEST}\n"
    )
    assert pins_of(text) == [
        Pin("click", "8.5.1", (DIGEST,)),
        Pin("uvloop", "0.23.0", (DIGEST, DIGEST)),
    ]
    with pytest.raises(ValueError, match="click>=8"):
        pins_of("click>=8\n")


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("requirements-*.lock")))
def test_every_lock_file_of_the_project_is_read(name: str) -> None:
    pins = pins_of((ROOT / name).read_text())
    assert pins
    assert all(pin.hashes for pin in pins)


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("Commercial", False),
        ("", False),
    ],
)
def test_licences(licence: str, allowed: bool) -> None:
    assert is_allowed(licence) is allowed


def test_the_most_precise_declaration_counts() -> None:
    osi = ["License :: OSI Approved :: MIT License", "Topic :: Internet"]
    assert declared_licences({"License-Expression": "ISC", "License": "MIT"}, osi) == ["ISC"]
    assert declared_licences({"License": "a long text"}, osi) == ["MIT License"]
    assert declared_licences({"License": "BSD 3-Clause License\n\nCopyright"}, []) == [
        "BSD 3-Clause License"
    ]
    assert declared_licences({}, []) == []


def test_a_forbidden_licence_is_found() -> None:
    good, bad, silent, absent = (Pin(name, "1", ()) for name in ("good", "bad", "silent", "absent"))
    faults = licence_faults({good: ["MIT"], bad: ["GPL-3.0-only"], silent: [], absent: None})
    assert faults == ["bad 1 is under 'GPL-3.0-only'", "silent 1 declares no licence"]


@pytest.mark.parametrize(
    "answer", [b"<html>", b"[]", b'{"results":[]}', b'{"results":[{"vulns":[{}]}]}']
)
def test_an_answer_that_is_none_is_not_taken_for_good_news(answer: bytes) -> None:
    with pytest.raises(CouldNotAsk):
        vulnerabilities([Pin("pyyaml", "5.3", ())], lambda body: answer)


def test_the_bill_of_materials_names_every_package() -> None:
    pin = Pin("PyYAML", "6.0.3", (DIGEST,))
    document = sbom(
        [pin],
        {pin: ["MIT"]},
        version="0.1.0",
        now=datetime(2026, 1, 31, tzinfo=UTC),
        serial=uuid.UUID(int=7),
    )
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert document["serialNumber"] == "urn:uuid:00000000-0000-0000-0000-000000000007"
    [component] = document["components"]
    assert component["purl"] == component["bom-ref"] == "pkg:pypi/pyyaml@6.0.3"
    assert component["licenses"] == [{"license": {"name": "MIT"}}]


class Advisories(BaseHTTPRequestHandler):
    """Answers as OSV does; knows of one vulnerability."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        known = [
            {"vulns": [{"id": "GHSA-planted"}]}
            if f"{one['package']['name']}=={one['version']}" == FAULTY
            else {}
            for one in json.loads(body)["queries"]
        ]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"results": known}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def source() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Advisories) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def audit(directory: Path, lock: str, *options: str) -> subprocess.CompletedProcess[str]:
    file = directory / "requirements.lock"
    file.write_text(lock)
    command = [sys.executable, str(ROOT / "tools" / "audit.py"), "--lock", str(file)]
    return subprocess.run(
        [*command, "--sbom", str(directory / "sbom.json"), *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_vulnerable_pin_is_found(tmp_path: Path, source: str) -> None:
    done = audit(tmp_path, f"click==8.5.1\n{FAULTY}\n", "--source", source)
    assert done.returncode == 1, done.stderr
    assert "VULNERABLE pyyaml 5.3: GHSA-planted" in done.stdout
    assert "2 packages asked for, 1 with known ones" in done.stdout
    fine = audit(tmp_path, "click==8.5.1\n", "--source", source)
    assert fine.returncode == 0, fine.stdout


def test_it_says_that_it_could_not_ask(tmp_path: Path) -> None:
    done = audit(tmp_path, f"{FAULTY}\n", "--source", "http://127.0.0.1:1/")
    assert done.returncode == 3
    assert "vulnerabilities: NOT ASKED, http://127.0.0.1:1/ does not answer" in done.stdout
    offline = audit(tmp_path, f"{FAULTY}\n", "--offline")
    assert (offline.returncode, "NOT ASKED" in offline.stdout) == (0, True)


def test_the_project_itself_has_only_allowed_licences(tmp_path: Path) -> None:
    lock = (ROOT / "requirements-dev.lock").read_text()
    done = audit(tmp_path, lock, "--offline")
    assert done.returncode == 0, done.stdout
    assert len(json.loads((tmp_path / "sbom.json").read_text())["components"]) > 50
