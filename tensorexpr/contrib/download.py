"""Files that programs fetch: `download_testdata(url, "cat.png", module="data")` keeps them under a folder of the user's."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import ArgumentError, TensorExprError

TEST_DATA_ROOT_PATH = Path(os.environ.get("TEST_DATA_ROOT_PATH", "~/.tvm_test_data")).expanduser()
_SCHEMES = ("http", "https")
_SECONDS = 60


def download(url: str, path: str | os.PathLike[str], overwrite: bool = False, size_compare: bool = False, retries: int = 3) -> None:
    """Fetch a file.

    Args:
        url: where it is, by HTTP or HTTPS.
        path: where it is put; the folder is made.
        overwrite: whether a file that is there is fetched again.
        size_compare: accepted: a file is put in place once all of it is there.
        retries: how often more it is tried.

    Raises:
        ArgumentError: for another scheme.
        TensorExprError: if it can't be fetched.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        return
    if urlsplit(url).scheme not in _SCHEMES:
        raise ArgumentError(f"download fetches {' and '.join(_SCHEMES)}, not {url!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    problem: OSError | None = None
    for _ in range(max(retries, 0) + 1):
        # Beside its place: a file that is there is whole.
        handle, part = tempfile.mkstemp(prefix=target.name, dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file, urllib.request.urlopen(url, timeout=_SECONDS) as source:
                shutil.copyfileobj(source, file)
            os.replace(part, target)
            return
        except OSError as error:
            os.unlink(part)
            problem = error
    raise TensorExprError(f"{url} can't be fetched: {problem}") from problem


def download_testdata(url: str, relpath: str, module: str | list[str] | None = None, overwrite: bool = False) -> str:
    """Fetch a file once.

    Args:
        url: where it is.
        relpath: its name.
        module: folders that it is put in, under `TEST_DATA_ROOT_PATH`.
        overwrite: whether it is fetched again.

    Returns:
        Its path.

    Raises:
        TensorExprError: as of `download`.
    """
    folders = [] if module is None else [module] if isinstance(module, str) else list(module)
    path = TEST_DATA_ROOT_PATH.joinpath(*folders, relpath)
    download(url, path, overwrite)
    return str(path)


__all__ = ["TEST_DATA_ROOT_PATH", "download", "download_testdata"]
