"""FakeQuantizationToInteger: operators between quantize and dequantize on integers."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ...relax import transform as on_graphs
from .common import on_graph


def FakeQuantizationToInteger(hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Any = None) -> ModulePass:
    """Operators between quantize and dequantize on integers.

    Args:
        hard_fail, use_qat, optional_qnn_ops: accepted: what has no integer form stays as it is.
    """
    return on_graph("FakeQuantizationToInteger", 0, on_graphs.FakeQuantizationToInteger())


__all__ = ["FakeQuantizationToInteger"]
