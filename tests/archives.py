"""Unpacks the archives of the golden stores with every Python from 3.11.0 on."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path


def unpack(archive: tarfile.TarFile, directory: Path, members: Iterable[tarfile.TarInfo]) -> None:
    if hasattr(tarfile, "data_filter"):
        archive.extractall(directory, members=members, filter="data")
    else:  # Before 3.11.4; the archives are our own.
        archive.extractall(directory, members=members)
