"""The shared folder: private, removed at the end, swept when its owner was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorexpr.tune.measure.folder import SharedFolder


@pytest.fixture(autouse=True)
def _own_tempdir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def age(folder: Path) -> None:
    """Make a folder look as if it had been there for an hour."""
    long_ago = folder.stat().st_mtime - 3600
    os.utime(folder, (long_ago, long_ago))


def test_a_folder_is_private_and_goes_away(tmp_path: Path) -> None:
    folder = SharedFolder()
    assert folder.path.parent == tmp_path
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "file").touch()
    folder.close()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_the_living_stay() -> None:
    first = SharedFolder()
    age(first.path)
    second = SharedFolder()
    assert first.path.exists()
    first.close()
    second.close()


def test_folders_of_the_dead_are_swept(tmp_path: Path) -> None:
    program = (
        f"import os, tempfile\ntempfile.tempdir = {str(tmp_path)!r}\n"
        "from tensorexpr.tune.measure.folder import SharedFolder\nfolder = SharedFolder()\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(filter(None, sys.path))}, check=False)
    (left,) = tmp_path.iterdir()
    SharedFolder().close()
    assert left.exists(), "it may be too young to be locked"
    age(left)
    SharedFolder().close()
    assert not left.exists()


def test_what_is_no_such_folder_stays(tmp_path: Path) -> None:
    kept = [tmp_path / "other", tmp_path / "tensorexpr-measure-unlocked"]
    for folder in kept:
        folder.mkdir()
        age(folder)
    (tmp_path / "tensorexpr-measure-file").touch()
    SharedFolder().close()
    assert all(folder.exists() for folder in kept)
