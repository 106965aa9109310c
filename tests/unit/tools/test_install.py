"""The set-up tells what it installs and how much is left, and nothing of what pip grumbles about."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "install.py"

LOCK = """\
click==8.5.1 \\
    --hash=sha256:00
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:01
pyspark[connect]==4.2.0 \\
    --hash=sha256:02
"""

FAKE_PIP = """\
import sys
if "--editable" in sys.argv:
    sys.exit(CODE and print('no space left') or CODE)
print("Ignoring colorama: markers 'sys_platform == \\"win32\\"' don't match your environment")
print("Collecting click==8.5.1\\n  Downloading click-8.5.1-py3-none-any.whl (110 kB)")
print("Collecting pyspark[connect]==4.2.0\\n  Downloading pyspark-4.2.0.tar.gz (434.2 MB)")
print("Installing collected packages: click, pyspark")
print("  DEPRECATION: pyspark is being installed using the legacy method", file=sys.stderr)
print("  Running setup.py install for pyspark: started", flush=True)
"""


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The tool, with a pip that only talks."""
    spec = importlib.util.spec_from_file_location("install", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "requirements.lock").write_text(LOCK)

    def run(code: int = 0) -> int:
        python = tmp_path / "python"
        python.write_text(f"#!{sys.executable}\n{FAKE_PIP.replace('CODE', str(code))}")
        python.chmod(0o755)
        monkeypatch.setattr(module.sys, "executable", str(python))
        return int(module.main(str(tmp_path / "requirements.lock")))

    return SimpleNamespace(run=run, Display=module.Display, Progress=module.Progress)


def test_large_packages_and_phases_are_told(
    install: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert install.run() == 0
    said = capfd.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("installing what is needed into ")
    assert "  [2/2] pyspark 4.2.0, 434 MB" in lines
    assert "  all 2 are here; unpacking them" in lines
    assert "  all 2 are here; building pyspark" in lines
    assert lines[-1].startswith("  2 packages and cometmq itself installed in ")
    assert "DEPRECATION" not in said.out + said.err
    assert said.err == ""


def test_a_failure_shows_what_pip_said(install: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert install.run(3) == 3
    said = capfd.readouterr()
    assert "\nno space left\ncannot set up: pip failed, see above" in said.err
    assert "installed in" not in said.out


def test_a_terminal_has_one_line_that_changes(install: Any) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    display = install.Display(terminal)
    progress = install.Progress(LOCK)
    for line in ("Collecting click==8.5.1", "Collecting pyspark[connect]==4.2.0"):
        display.show(progress.text, is_worth_a_line=progress.take(line))
    display.show(progress.text, is_worth_a_line=False)
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\033[K  [2/3] pyspark 4.2.0  (0 s)")
