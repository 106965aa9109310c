"""The build compiles the twins where it can, and does without them where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SHARED: Final = "cdef inline long long same(long long number) noexcept:\n    return number\n"
TWIN: Final = """\
from cometmq.native.shared cimport same

def twice(long long number) -> int:
    return 2 * same(number)
"""
EXTENSION: Final = sysconfig.get_config_var("EXT_SUFFIX")
COMPILER: Final = sysconfig.get_config_var("CC").split()[0]

needs_compiler = pytest.mark.skipif(
    shutil.which(COMPILER) is None
    or not Path(sysconfig.get_paths()["include"], "Python.h").exists(),
    reason="no C compiler, or no headers of Python",
)


class Tree:
    """As much of the repository as the build looks at, with one small twin."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "src" / "cometmq" / "native"
        self.package.mkdir(parents=True)
        for package in (self.package, self.package.parent):
            (package / "__init__.py").touch()
        (self.package / "small.pyx").write_text(TWIN)
        # Of this tree, and of no cometmq that is installed.
        (self.package / "shared.pxd").write_text(SHARED)
        shutil.copy(ROOT / "hatch_build.py", root)

    def build(
        self, *, asked: str = "", compiler: str = COMPILER
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "hatch_build.py"],
            cwd=self.root,
            env={**os.environ, "CC": compiler, "COMETMQ_IMPL": asked},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def compiled(self) -> list[str]:
        return [path.name for path in self.package.glob("*.so")]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("asked", ["", "native"])
def test_with_a_compiler_the_twins_are_there_and_nothing_is_said(tree: Tree, asked: str) -> None:
    done = tree.build(asked=asked)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tree.compiled == [f"small{EXTENSION}"]
    assert sorted(path.name for path in tree.package.glob("*.c")) == []
    answer = subprocess.check_output(
        [sys.executable, "-c", "import small; print(small.twice(21))"],
        cwd=tree.package,
        text=True,
    )
    assert answer == "42\n"


@needs_compiler
@pytest.mark.slow
def test_a_twin_is_compiled_again_when_it_changed(tree: Tree) -> None:
    tree.build()
    [compiled] = tree.package.glob("*.so")
    before = compiled.stat().st_mtime_ns
    assert tree.build().returncode == 0
    assert compiled.stat().st_mtime_ns == before
    source = tree.package / "small.pyx"
    source.write_text(TWIN.replace("2 *", "3 *"))
    later = before // 10**9 + 2
    os.utime(source, (later, later))
    assert tree.build().returncode == 0
    answer = subprocess.check_output(
        [sys.executable, "-c", "import small; print(small.twice(21))"],
        cwd=tree.package,
        text=True,
    )
    assert answer == "63\n"


@pytest.mark.parametrize("asked", ["", "auto"])
def test_without_a_compiler_it_goes_on_and_says_so_in_one_line(tree: Tree, asked: str) -> None:
    done = tree.build(asked=asked, compiler="no-such-compiler")
    assert done.returncode == 0
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("cometmq: not compiled, so it runs in Python alone: ")
    assert "no-such-compiler" in line
    assert tree.compiled == []


def test_without_a_compiler_native_is_an_error(tree: Tree) -> None:
    done = tree.build(asked="native", compiler="no-such-compiler")
    assert done.returncode != 0
    assert "no-such-compiler" in done.stderr
    assert tree.compiled == []


@needs_compiler
@pytest.mark.slow
def test_a_twin_that_no_longer_compiles_does_not_run_as_it_was(tree: Tree) -> None:
    tree.build()
    source = tree.package / "small.pyx"
    later = (tree.package / f"small{EXTENSION}").stat().st_mtime + 2
    source.write_text("cdef int = = 3\n")
    os.utime(source, (later, later))
    done = tree.build()
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].startswith("cometmq: not compiled, so it runs in Python")
    assert tree.compiled == []
    assert tree.build(asked="native").returncode != 0


@needs_compiler
@pytest.mark.slow
def test_what_has_no_source_any_more_is_not_packed(tree: Tree) -> None:
    (tree.package / f"renamed{EXTENSION}").touch()
    script = "import hatch_build; print(*hatch_build.compile_if_possible(hatch_build.Path.cwd()))"
    said = subprocess.check_output(
        [sys.executable, "-c", script],
        cwd=tree.root,
        env={**os.environ, "COMETMQ_IMPL": "auto"},
        text=True,
    )
    assert said.split() == [str(tree.package / f"small{EXTENSION}")]


def test_python_is_left_alone_where_it_is_asked_for(tree: Tree) -> None:
    done = tree.build(asked="python", compiler="no-such-compiler")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tree.compiled == []
