"""Values as if they were quantised: `simulated_quantize`, whose scale and limits are variables that a calibration binds."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..expr import Var
from ..ops.annotation import simulated_quantize
from ..ty import TensorType


class QAnnotateKind(IntEnum):
    """What is quantised."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


def attach_simulated_quantize(data: Any, kind: int, sign: bool = True, rounding: str = "round") -> Any:
    """A value by steps of a scale between two limits; itself if it is so already.

    Args:
        data: a tensor of floats.
        kind: a `QAnnotateKind`.
        sign: whether integers have signs.
        rounding: "round" to the nearest integer, or "stochastic_round", as which the nearest one counts.
    """
    attrs = {"kind": int(kind), "sign": sign, "rounding": rounding}
    if getattr(data, "op", None) == "annotation.simulated_quantize" and dict(data.attrs) == attrs:
        return data
    return simulated_quantize(data, *(Var(name, TensorType((), "float32")) for name in ("dom_scale", "clip_min", "clip_max")), **attrs)


__all__ = ["QAnnotateKind", "attach_simulated_quantize"]
