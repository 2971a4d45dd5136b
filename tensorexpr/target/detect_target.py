"""The target of a device of this machine. Only CPUs can be asked: no driver of another device is talked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import processor
from ..errors import TargetError
from .target import Target


def _detect_cpu(device: Any) -> Target:
    return Target({"kind": "llvm", "mcpu": processor.host_cpu(), "mtriple": processor.host_triple()})


SUPPORT_DEVICE: dict[str, Callable[[Any], Target]] = {"cpu": _detect_cpu, "llvm": _detect_cpu}


def detect_target_from_device(dev: Any) -> Target:
    """The target of a device such as `cpu()` or "cpu": this machine's CPU by its name.

    Raises:
        TargetError: for devices that can't be asked.
    """
    name = str(dev).split("(")[0].split(":")[0]
    if name not in SUPPORT_DEVICE:
        raise TargetError(f"no target for device {dev!s}: only cpu can be asked; write it, as in Target('cuda -arch=sm_80')")
    return SUPPORT_DEVICE[name](dev)
