"""The pipelines that come with the package, by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from cometmq.base.errors import UsageError


def shipped() -> dict[str, Path]:
    """Files by name, in order."""
    # The package is installed as files, never run from an archive: Spark's workers could not import it.
    directory = Path(str(resources.files("cometmq.spark"))) / "pipelines"
    return {path.stem: path for path in sorted(directory.glob("*.yaml"))}


def find(name: str) -> Path:
    """A file of the user, or a pipeline that comes with the package. Raises UsageError when there is neither."""
    path = Path(name)
    if path.is_file():
        return path
    known = shipped()
    if name in known:
        return known[name]
    raise UsageError(
        f"there is no file {name!r}, and no pipeline of this name comes along; those that do: {', '.join(known)}"
    )


def description_of(path: Path) -> str:
    """Its first line of description, without reading more into the file."""
    import yaml

    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    return str(value.get("description", "")).strip().splitlines()[0]
