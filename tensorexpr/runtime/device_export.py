"""A module of kernels as files: `x.ptx`, and beside it `x.ptx.json`, from which the host's part is made again.

The description is JSON: the target, the lowered functions, what launches need, and the hash of the text. It is read strictly.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from ..errors import RecordError, TensorExprError
from ..ir.base import load_json, save_json
from ..target import Target
from ..tir.function import IRModule
from .device_build import hosts_of
from .device_module import DeviceCode, DeviceModule, KernelInfo
from .sidecar import SidecarError

FORMAT = 1


def write(module: DeviceModule, path: Path) -> None:
    """Write both files; see `DeviceModule.export_library`."""
    text, described = described_parts(module)
    path = path.with_suffix(".ptx")
    path.write_text(text)
    Path(f"{path}.json").write_text(json.dumps(described))


def described_parts(module: DeviceModule) -> tuple[str, dict[str, Any]]:
    """The text of a module's kernels, and its description as JSON, of which `from_parts` makes the module again."""
    text = module.code.assembly
    kernels = {name: [list(info.dtypes), info.static_shared, info.dynamic_shared] for name, info in module.code.kernels.items()}
    described = {
        "format": FORMAT,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "target": module.target.export(),
        "kernels": kernels,
        "functions": save_json(module.lowered),
    }
    return text, described


def read(path: Path) -> DeviceModule:
    """The module of `x.ptx` and its description.

    Raises:
        TensorExprError: for files that are missing, torn or don't belong together.
    """
    try:
        text, described = path.read_text(), json.loads(Path(f"{path}.json").read_text())
    except OSError as error:
        raise TensorExprError(f"{path}: {error.strerror}; export_library writes the text and, beside it, its description") from None
    except (ValueError, RecursionError) as error:
        raise SidecarError(f"{path}: the description is no JSON: {error}") from None
    return from_parts(text, described, str(path))


def from_parts(text: str, described: Any, path: str = "kernels") -> DeviceModule:
    """The module of a text and its description.

    Args:
        text: the kernels.
        described: what `described_parts` made.
        path: where they are from, for errors.

    Raises:
        TensorExprError: if they don't belong together.
    """
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise SidecarError(f"{path}: the description has another format than {FORMAT}; export the module again")
    if not hmac.compare_digest(str(described.get("sha256")), hashlib.sha256(text.encode()).hexdigest()):
        raise SidecarError(f"{path}: the text is not the one that its description was written for; export the module again")
    try:
        target, lowered = Target(described["target"]), load_json(described["functions"])
        kernels = {str(name): _info(record) for name, record in described["kernels"].items()}
    except (KeyError, TypeError, ValueError, AttributeError, RecordError) as error:
        raise SidecarError(f"{path}: the description does not describe kernels: {error}") from None
    if not isinstance(lowered, IRModule):
        raise SidecarError(f"{path}: the description holds no functions")
    hosts, made = hosts_of(lowered, target)
    if set(made) != set(kernels):
        raise SidecarError(f"{path}: the description names kernels {', '.join(kernels)}, and its functions launch {', '.join(made)}")
    return DeviceModule(DeviceCode("", text, kernels, target), hosts, target, lowered)


def _info(record: Any) -> KernelInfo:
    dtypes, static, dynamic = record
    return KernelInfo(tuple(map(str, dtypes)), int(static), int(dynamic))
