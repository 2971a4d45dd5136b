"""Archives of files."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import TensorExprError
from .utils import TempDirectory


def tar(output: str | os.PathLike[str], files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> None:
    """Write an archive of files, by their names without folders.

    Raises:
        TensorExprError: if two have one name.
    """
    paths = [Path(files)] if isinstance(files, (str, os.PathLike)) else [Path(file) for file in files]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        raise TensorExprError(f"tar: two files have one name: {', '.join(sorted(name for name in set(names) if names.count(name) > 1))}")
    with tarfile.open(output, "w") as archive:
        for path in paths:
            archive.add(path, arcname=path.name)


# Programs ask it which file it makes.
tar.output_format = "tar"  # type: ignore[attr-defined]


def untar(tar_file: str | os.PathLike[str], directory: str | os.PathLike[str]) -> None:
    """Write the plain files of an archive into a folder; names that lead out of it, links and devices are refused.

    Raises:
        TensorExprError: for such a member, or a file that is no archive.
    """
    root = Path(directory).resolve()
    try:
        with tarfile.open(tar_file) as archive:
            members = archive.getmembers()
            for member in members:
                # resolved: a/../../x leads out, and so does a name that begins with /
                inside = (root / member.name).resolve().is_relative_to(root)
                if not inside or not (member.isfile() or member.isdir()):
                    raise TensorExprError(f"{os.fspath(tar_file)}: {member.name!r} is no file inside the folder; nothing was written")
            # all were checked before the first is written
            for member in members:
                place = root / member.name
                if member.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                place.write_bytes(content.read() if content else b"")
    except tarfile.TarError as error:
        raise TensorExprError(f"{os.fspath(tar_file)}: no archive: {error}") from None


def normalize_file_list_by_unpacking_tars(temp: TempDirectory, file_list: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files of a list, archives replaced by what is in them, which is written to a temporary folder."""
    found: list[str] = []
    for number, path in enumerate([os.fspath(file) for file in file_list]):
        if not path.endswith(".tar"):
            found.append(path)
            continue
        folder = Path(temp.relpath(f"archive{number}"))
        folder.mkdir()
        untar(path, folder)
        found.extend(str(file) for file in sorted(folder.rglob("*")) if file.is_file())
    return found
