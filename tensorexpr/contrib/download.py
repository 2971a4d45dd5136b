"""Files that programs of others fetch. Nothing here uses a network: what is there already is found by the names that TVM gives it.

download_testdata(url, "cat.png", module="data")    ->    ~/.tvm_test_data/data/cat.png, where somebody has put it
"""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import TensorExprError

TEST_DATA_ROOT_PATH = Path(os.environ.get("TEST_DATA_ROOT_PATH", "~/.tvm_test_data")).expanduser()


def download(url: str, path: str | os.PathLike[str], overwrite: bool = False, size_compare: bool = False, retries: int = 3) -> None:
    """Look for a file that a program would fetch.

    Args:
        url: where it comes from, for the message.
        path: where it has to be.
        overwrite, size_compare, retries: accepted, and without a meaning.

    Raises:
        TensorExprError: if it isn't there.
    """
    if not Path(path).is_file():
        raise TensorExprError(f"{path} isn't there, and nothing is fetched here: get {url} by other means and put it there")


def download_testdata(url: str, relpath: str, module: str | list[str] | None = None, overwrite: bool = False) -> str:
    """The path of a file that a program would fetch once.

    Args:
        url: where it comes from, for the message.
        relpath: its name.
        module: folders that it is in, under `TEST_DATA_ROOT_PATH`.
        overwrite: accepted, and without a meaning.

    Raises:
        TensorExprError: if it isn't there.
    """
    folders = [] if module is None else [module] if isinstance(module, str) else list(module)
    path = TEST_DATA_ROOT_PATH.joinpath(*folders, relpath)
    download(url, path, overwrite)
    return str(path)


__all__ = ["TEST_DATA_ROOT_PATH", "download", "download_testdata"]
