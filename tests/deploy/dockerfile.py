"""Carries out a Dockerfile without Docker: every stage in a file system of its own, laid over this machine's.

What is missing is the base image: this machine, with a Python that others may run, stands in for it. RUN lines run as
they are, by ``sh`` in a chroot; COPY takes what ``.dockerignore`` lets through. Needs root, as mounting does.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOT_USER = 0
SECONDS_MAX = 240.0
_LOWEST_PYTHON = (3, 11)


class CannotBuild(Exception):
    """Why this machine cannot stand in for Docker."""


class BuildFailed(Exception):
    """A command of the Dockerfile failed; what it printed."""


@dataclass
class Stage:
    root: Path
    directory: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "0:0"
    entry: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """A path of the stage, on this machine."""
        absolute = path if path.startswith("/") else f"{self.directory}/{path}"
        return self.root / os.path.normpath(absolute).lstrip("/")

    def command(self, *arguments: str, extra: dict[str, str] | None = None) -> list[str]:
        """To be run on this machine: the arguments in the stage, by its user, with its environment alone."""
        environment = {**self.environment, **(extra or {})}
        return [
            *("env", "-i", *(f"{key}={value}" for key, value in environment.items())),
            *("chroot", "--userspec", self.user, str(self.root)),
            *("sh", "-c", 'cd "$0" && exec "$@"', self.directory, *arguments),
        ]


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Words and what stands behind them; lines that are continued are joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for joined in re.split(r"(?<!\\)\n", "\n".join(lines)):
        word, _, rest = joined.replace("\\\n", " ").partition(" ")
        yield word, rest.strip()


def build(context: Path, work: Path) -> Stage:
    """The last stage. Mounts are the process's, which has them to itself. Raises CannotBuild, BuildFailed."""
    python = _python()
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, rest in instructions((context / "Dockerfile").read_text()):
        if word == "ARG":
            continue
        if word == "FROM":
            name = rest.split(" AS ")[1] if " AS " in rest else f"stage-{len(stages)}"
            stage = stages[name] = _begin(work / name, python)
            continue
        assert stage is not None, f"{word} before FROM"
        _take(word, rest, stage, stages, context)
    assert stage is not None
    return stage


def _take(word: str, rest: str, stage: Stage, stages: dict[str, Stage], context: Path) -> None:
    if word == "RUN":
        _run(stage, rest)
    elif word == "WORKDIR":
        stage.directory = rest
        stage.inside(rest).mkdir(parents=True, exist_ok=True)
    elif word == "COPY":
        _copy(rest, stage, stages, context)
    elif word == "ENV":
        for pair in shlex.split(rest):
            key, _, value = pair.partition("=")
            stage.environment[key] = value.replace("$PATH", stage.environment["PATH"])
    elif word == "USER":
        stage.user = rest
    elif word == "ENTRYPOINT":
        stage.entry = json.loads(rest)
    else:
        assert word in ("EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "CMD"), word


def _begin(directory: Path, python: str) -> Stage:
    for name in ("upper", "work", "root"):
        (directory / name).mkdir(parents=True)
    options = f"lowerdir=/,upperdir={directory}/upper,workdir={directory}/work"
    _check("mount", "-t", "overlay", "overlay", "-o", options, str(directory / "root"))
    root = directory / "root"
    _check("mount", "--rbind", "/dev", str(root / "dev"))
    _check("mount", "-t", "proc", "proc", str(root / "proc"))
    _check("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(root / "tmp"))
    link = root / "usr/local/bin/python"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(python)
    return Stage(root)


def _check(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{shlex.join(command)}: {done.stderr.strip()}")


def _python() -> str:
    """One that everybody may run: the image's user is nobody here."""
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        path = Path(candidate)
        if not path.exists() or not all(_is_open(one) for one in (path, *path.parents)):
            continue
        asked = subprocess.run(
            [candidate, "-c", "import ensurepip, sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if not asked.returncode and tuple(map(int, asked.stdout.split())) >= _LOWEST_PYTHON:
            return candidate
    raise CannotBuild("there is no Python 3.11 or later, with venv, that everybody may run")


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXOTH)


def _run(stage: Stage, command: str) -> None:
    passed = {key: os.environ[key] for key in os.environ if _is_about_packages(key)}
    done = subprocess.run(
        stage.command("sh", "-c", command, extra={"HOME": "/tmp", **passed}),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    if done.returncode:
        raise BuildFailed(f"RUN {command}\n{done.stdout}\n{done.stderr}")


def _is_about_packages(key: str) -> bool:
    """Where pip finds packages here is this machine's matter, not that of the image."""
    return key.startswith("PIP_") or key.lower().endswith("_proxy") or key == "SSL_CERT_FILE"


def _copy(rest: str, stage: Stage, stages: dict[str, Stage], context: Path) -> None:
    words = rest.split()
    if words[0].startswith("--from="):
        other = stages[words.pop(0).partition("=")[2]]
        [source, target] = words
        shutil.copytree(other.inside(source), stage.inside(target), symlinks=True)
        return
    *sources, target = words
    for name in sources:
        _copy_from_context(context, name, stage, target, into=target.endswith("/"))


def _copy_from_context(context: Path, name: str, stage: Stage, target: str, *, into: bool) -> None:
    source = context / name
    place = stage.inside(target) / source.name if into else stage.inside(target)
    files = [source] if source.is_file() else [one for one in source.rglob("*") if one.is_file()]
    allowed = [one for one in files if is_sent(context, one.relative_to(context).as_posix())]
    if not allowed:
        raise BuildFailed(f"COPY {name}: .dockerignore keeps it back")
    for file in allowed:
        to = place / file.relative_to(source) if source.is_dir() else place
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, to)


def is_sent(context: Path, name: str) -> bool:
    """Whether ``.dockerignore`` lets a file through: the last line that is about it decides."""
    sent = True
    for line in (context / ".dockerignore").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        if _is_about(pattern, name):
            sent = line.startswith("!")
    return sent


def _is_about(pattern: str, name: str) -> bool:
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatch(part, pattern[3:]) for part in name.split("/"))
    parents = [name, *(parent.as_posix() for parent in Path(name).parents)]
    return any(fnmatch.fnmatch(one, pattern) for one in parents)
