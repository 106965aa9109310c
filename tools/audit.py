"""Looks at what the software is built from: known vulnerabilities, licences, and a bill of materials.

python tools/audit.py                     # everything in the requirements-*.lock files
python tools/audit.py --offline           # without asking for vulnerabilities, and says so

Vulnerabilities come from OSV, the database that pip-audit asks as well, in one request for all pins. Licences are those
that installed packages declare. The bill of materials is CycloneDX 1.5 in build/sbom.json.

Exit code: 0 nothing was found; 1 something was found; 3 nobody could be asked for vulnerabilities.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = "https://api.osv.dev/v1/querybatch"
SBOM: Final = ROOT / "build" / "sbom.json"

FOUND: Final = 1
NOT_ASKED: Final = 3

_SECONDS_MAX: Final = 30.0
_ANSWER_BYTES_MAX: Final = 32 << 20
_PIN: Final = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^ ;\\]+)")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")

# The project is under Apache-2.0: what it is built from may ask for no more than attribution, or, as MPL does, for the
# sources of its own files. A licence that is not here needs somebody who reads it.
_ALLOWED: Final = re.compile(
    r"(MIT|MIT-0|MIT-CMU|MIT License|ISC|Zlib|0BSD|CC0-1\.0|PSF-2\.0"
    r"|BSD|BSD License|BSD-[23]-Clause|BSD [23]-Clause License|[23]-Clause BSD License"
    r"|Apache-2\.0|Apache 2\.0|Apache Software License"
    r"|MPL-2\.0|Mozilla Public License 2\.0 \(MPL 2\.0\)"
    r"|Python Software Foundation License|Public domain)"
)


class Pin(NamedTuple):
    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class CouldNotAsk(Exception):
    """The source of vulnerabilities did not answer, or not as it should."""


Fetch = Callable[[bytes], bytes]
"""The body of a request to the source, and that of its answer. Raises CouldNotAsk."""


def pins_of(text: str) -> list[Pin]:
    """What a lock file pins. Raises ValueError for a line that is neither a pin, a hash nor a comment."""
    pins: list[Pin] = []
    for line in text.splitlines():
        found = _PIN.match(line)
        digest = _HASH.search(line)
        if found:
            pins.append(Pin(found[1], found[2], ()))
        elif digest and pins:
            pins[-1] = pins[-1]._replace(hashes=(*pins[-1].hashes, digest[1]))
        elif line.strip() and not line.lstrip().startswith("#"):
            raise ValueError(f"expected NAME==VERSION or a hash, got {line!r}")
    return pins


def vulnerabilities(pins: Sequence[Pin], fetch: Fetch) -> dict[Pin, list[str]]:
    """Ids of what is known about each pin, of those that have any. Raises CouldNotAsk."""
    queries = [
        {"package": {"ecosystem": "PyPI", "name": pin.name}, "version": pin.version} for pin in pins
    ]
    try:
        results = json.loads(fetch(json.dumps({"queries": queries}).encode()))["results"]
        known = [[str(one["id"]) for one in result.get("vulns", ())] for result in results]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CouldNotAsk(f"an answer that is none: {error!r}") from None
    if len(known) != len(pins):
        raise CouldNotAsk(f"{len(known)} answers to {len(pins)} questions")
    return {pin: ids for pin, ids in zip(pins, known, strict=True) if ids}


def declared_licences(metadata: Mapping[str, Any], classifiers: Iterable[str]) -> list[str]:
    """What a package says about its licence: all of them hold. Its texts are preferred in order of precision."""
    if expression := metadata.get("License-Expression"):
        return [str(expression)]
    titles = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: OSI")]
    if titles:
        return titles
    first_line = str(metadata.get("License") or "").strip().partition("\n")[0]
    return [first_line] if first_line else []


def is_allowed(licence: str) -> bool:
    """Of alternatives one is enough; of what is joined, all are needed."""
    return any(
        all(_ALLOWED.fullmatch(part.strip()) for part in one.split(" AND "))
        for one in licence.split(" OR ")
    )


def licence_faults(licences: Mapping[Pin, list[str] | None]) -> list[str]:
    """None stands for a package that is not installed here in this version, as on another system: nothing is known."""
    faults = []
    for pin, declared in licences.items():
        if declared is None:
            continue
        if not declared:
            faults.append(f"{pin} declares no licence")
        faults += [f"{pin} is under {one!r}" for one in declared if not is_allowed(one)]
    return faults


def sbom(
    pins: Iterable[Pin],
    licences: Mapping[Pin, list[str] | None],
    *,
    version: str,
    now: datetime,
    serial: uuid.UUID,
) -> dict[str, Any]:
    """CycloneDX 1.5."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial.urn,
        "version": 1,
        "metadata": {
            "timestamp": now.isoformat(timespec="seconds"),
            "component": {
                "type": "application",
                "name": "cometmq",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [
            {
                "type": "library",
                "bom-ref": pin.purl,
                "name": pin.name,
                "version": pin.version,
                "purl": pin.purl,
                "licenses": [{"license": {"name": one}} for one in licences.get(pin) or []],
                # The artifacts that the lock file accepts: one for each system, and the sources.
                "properties": [{"name": "sha256", "value": digest} for digest in pin.hashes],
            }
            for pin in pins
        ],
    }


def installed_licences(pins: Iterable[Pin]) -> dict[Pin, list[str] | None]:
    found: dict[Pin, list[str] | None] = {}
    for pin in pins:
        try:
            metadata = importlib.metadata.metadata(pin.name)
        except importlib.metadata.PackageNotFoundError:
            found[pin] = None
            continue
        if metadata["Version"] != pin.version:
            found[pin] = None
            continue
        texts = {key: metadata[key] for key in ("License-Expression", "License") if key in metadata}
        found[pin] = declared_licences(texts, metadata.get_all("Classifier") or [])
        found[pin] = found[pin] or _titles(metadata.get_all("License-File") or [], pin.name)
    return found


def _titles(files: Iterable[str], package: str) -> list[str]:
    """The first lines of a package's licence files, which is all that some packages tell."""
    distribution = importlib.metadata.distribution(package)
    texts = (distribution.read_text(f"licenses/{name}") for name in files)
    return [text.strip().partition("\n")[0] for text in texts if text]


def fetch_from(source: str) -> Fetch:
    def fetch(body: bytes) -> bytes:
        request = urllib.request.Request(source, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_MAX) as answer:
                return bytes(answer.read(_ANSWER_BYTES_MAX))
        except (OSError, ValueError) as error:
            raise CouldNotAsk(str(error)) from None

    return fetch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lock", action="append", type=Path, help="lock file; may be repeated")
    parser.add_argument("--source", default=SOURCE, help=f"of vulnerabilities; default {SOURCE}")
    parser.add_argument("--offline", action="store_true", help="do not ask for vulnerabilities")
    parser.add_argument("--sbom", type=Path, default=SBOM, help="where to write it")
    given = parser.parse_args()
    files: list[Path] = given.lock or sorted(ROOT.glob("requirements-*.lock"))
    pins = sorted({pin for file in files for pin in pins_of(file.read_text())})
    licences = installed_licences(pins)
    result = _tell_licences(licences)
    given.sbom.parent.mkdir(parents=True, exist_ok=True)
    version = importlib.metadata.version("cometmq")
    document = sbom(pins, licences, version=version, now=datetime.now(UTC), serial=uuid.uuid4())
    given.sbom.write_text(json.dumps(document, indent=2) + "\n")
    print(f"bill of materials: {len(pins)} packages in {given.sbom}")
    if given.offline:
        print("vulnerabilities: NOT ASKED, as --offline says")
        return result
    return _tell_vulnerabilities(pins, given.source) or result


def _tell_licences(licences: Mapping[Pin, list[str] | None]) -> int:
    faults = licence_faults(licences)
    for fault in faults:
        print(f"LICENCE {fault}: it is not on the list of those that are allowed")
    absent = [str(pin) for pin, declared in licences.items() if declared is None]
    print(f"licences: {len(licences) - len(absent)} packages, {len(faults)} faults")
    if absent:
        print(f"  not installed here, so not looked at: {', '.join(absent)}")
    return FOUND if faults else 0


def _tell_vulnerabilities(pins: Sequence[Pin], source: str) -> int:
    try:
        found = vulnerabilities(pins, fetch_from(source))
    except CouldNotAsk as error:
        print(f"vulnerabilities: NOT ASKED, {source} does not answer: {error}")
        return NOT_ASKED
    for pin, ids in found.items():
        print(f"VULNERABLE {pin}: {', '.join(ids)}")
    print(f"vulnerabilities: {len(pins)} packages asked for, {len(found)} with known ones")
    return FOUND if found else 0


if __name__ == "__main__":
    sys.exit(main())
