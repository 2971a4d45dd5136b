"""A session in this process: a folder for files, and modules loaded from it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..contrib.utils import tempdir
from ..errors import ArgumentError
from ..runtime import load_module
from ..runtime.device import Device, device
from ..runtime.module import Module
from ..runtime.registry import get_global_func


class Devices:
    """The devices of a session by name: `session.cpu(0)`, `session.cuda(0)`."""

    def device(self, dev_type: str | int, dev_id: int = 0) -> Device:
        """A device of the machine that the session runs on."""
        return device(dev_type, dev_id)

    def context(self, dev_type: str | int, dev_id: int = 0) -> Device:
        """The same as `device`, as programs of early releases call it."""
        return self.device(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> Device:
        """The CPU."""
        return self.device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> Device:
        """A CUDA GPU."""
        return self.device("cuda", dev_id)

    def gpu(self, dev_id: int = 0) -> Device:
        """A CUDA GPU."""
        return self.device("cuda", dev_id)

    def cl(self, dev_id: int = 0) -> Device:
        """An OpenCL device."""
        return self.device("opencl", dev_id)

    def vulkan(self, dev_id: int = 0) -> Device:
        """A Vulkan device."""
        return self.device("vulkan", dev_id)

    def metal(self, dev_id: int = 0) -> Device:
        """A Metal device."""
        return self.device("metal", dev_id)

    def rocm(self, dev_id: int = 0) -> Device:
        """A ROCm device."""
        return self.device("rocm", dev_id)

    def ext_dev(self, dev_id: int = 0) -> Device:
        """A device of an extension."""
        return self.device("ext_dev", dev_id)

    def hexagon(self, dev_id: int = 0) -> Device:
        """A Hexagon DSP."""
        return self.device("hexagon", dev_id)


def plain_name(name: str) -> str:
    """A file name without folders.

    Raises:
        ArgumentError: for another one.
    """
    # anything else could lead out of the folder; the system ends a name at \0
    if not name or name in (".", "..") or Path(name).name != name or "\0" in name:
        raise ArgumentError(f"{name!r} is no file name; files of a session lie in one folder, so names have no folders")
    return name


class LocalSession(Devices):
    """A session in this process, for programs that run with a server or without one."""

    def __init__(self) -> None:
        self._folder = tempdir()

    def close(self) -> None:
        """Nothing: it ends with what it gave out."""

    def get_function(self, name: str) -> Callable[..., Any]:
        """The registered function of a name.

        Raises:
            ArgumentError: if there is none.
        """
        found: Callable[..., Any] = get_global_func(name)
        return found

    def upload(self, data: str | os.PathLike[str] | bytes | bytearray, target: str | None = None) -> None:
        """Put a file, or bytes under the name `target`, into the session's folder; a library's description goes with it.

        Raises:
            ArgumentError: for bytes without a name, or a name with folders.
        """
        for name, content in upload_parts(data, target):
            Path(self._folder.relpath(plain_name(name))).write_bytes(content)

    def download(self, path: str) -> bytearray:
        """The content of a file in the session's folder."""
        return bytearray(Path(self._folder.relpath(plain_name(path))).read_bytes())

    def remove(self, path: str) -> None:
        """Remove a file from the session's folder."""
        Path(self._folder.relpath(plain_name(path))).unlink(missing_ok=True)

    def listdir(self, path: str = "") -> str:
        """The names in the session's folder, joined by commas."""
        return ",".join(sorted(self._folder.listdir()))

    def load_module(self, path: str) -> Module:
        """The module in a file of the session's folder."""
        found: Module = load_module(self._folder.relpath(plain_name(path)))
        return found


def upload_parts(data: str | os.PathLike[str] | bytes | bytearray, target: str | None) -> list[tuple[str, bytes]]:
    """What an upload consists of: the file, and the description beside it if there is one."""
    if isinstance(data, (bytes, bytearray)):
        if target is None:
            raise ArgumentError("upload: bytes need a name: upload(data, target='lib.tar')")
        return [(target, bytes(data))]
    path = Path(data)
    name = target or path.name
    described = Path(f"{path}.json")
    return [(name, path.read_bytes()), *([(f"{name}.json", described.read_bytes())] if described.exists() else [])]
