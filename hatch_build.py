"""Compiles the twins of the hot loops (``src/cometmq/native``) when the package is built or installed.

Without a C compiler or Python's headers, the package is built without them and says so once: everything works in
Python alone. ``COMETMQ_IMPL=native`` at build time makes that an error, ``COMETMQ_IMPL=python`` leaves them out.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("src/cometmq/native")
INCLUDED = ("*.pxd", "*.h")
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        compiled = compile_if_possible(root)
        if compiled:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"] += [path.relative_to(root).as_posix() for path in compiled]

    def clean(self, versions: list[str]) -> None:
        for pattern in ("*.c", "*.so"):
            for path in (Path(self.root) / PACKAGE).glob(pattern):
                path.unlink()


def compile_if_possible(root: Path) -> list[Path]:
    """The compiled modules; none where they cannot be, or are not wanted."""
    asked = os.environ.get("COMETMQ_IMPL") or "auto"
    if asked == "python":
        return []
    try:
        return compile_twins(root)
    except Exception as error:
        _remove_older_than_their_sources(root)
        if asked == "native":
            raise
        reason = str(error).strip().splitlines() or [repr(error)]
        print(f"cometmq: not compiled, so it runs in Python alone: {reason[-1]}", file=sys.stderr)
        return []


def compile_twins(root: Path, flags: list[str] | None = None) -> list[Path]:
    """The compiled modules, beside their sources. Raises whatever the compiler does.

    Args:
        flags: for compiler and linker, besides the usual ones.
    """
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        raise OSError("Python's headers are missing; Debian: apt-get install python3-dev")
    sources = sorted((root / PACKAGE).glob("*.pyx"))
    included = [path for kind in INCLUDED for path in sorted((root / PACKAGE).glob(kind))]
    # Python's own flags ask for debug symbols, which are ten times the size of the code.
    symbols = [] if os.environ.get("CFLAGS") else ["-g0"]
    before = Path.cwd()
    os.chdir(root)
    try:
        extensions = [
            Extension(
                f"cometmq.native.{source.stem}",
                [source.relative_to(root).as_posix()],
                depends=[path.relative_to(root).as_posix() for path in included],
                extra_compile_args=["-O3", "-fno-strict-aliasing", *(flags or symbols)],
                extra_link_args=flags or [],
            )
            for source in sources
        ]
        distribution = Distribution(
            {
                "name": "cometmq",
                "package_dir": {"": "src"},
                "ext_modules": cythonize(
                    extensions,
                    build_dir="build/native",
                    # Or it looks for our own .pxd files where the package is installed.
                    include_path=["src"],
                    compiler_directives=DIRECTIVES,
                    quiet=True,
                ),
            }
        )
        command = build_ext(distribution)
        command.inplace = True
        command.build_temp = "build/native"
        command.force = flags is not None
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(before)
    return [_compiled(source) for source in sources]


def _compiled(source: Path) -> Path:
    return source.with_name(f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}")


def _remove_older_than_their_sources(root: Path) -> None:
    """What was compiled from other sources must not run beside Python of today."""
    sources = list((root / PACKAGE).glob("*.pyx"))
    included = [path for kind in INCLUDED for path in (root / PACKAGE).glob(kind)]
    for source in sources:
        compiled = _compiled(source)
        newest = max(path.stat().st_mtime for path in (source, *included))
        if compiled.exists() and compiled.stat().st_mtime < newest:
            compiled.unlink()


if __name__ == "__main__":
    # For those who change them: `make setup` does this when a source is newer than what was compiled.
    compile_if_possible(Path(__file__).parent)
