"""Marks on values: `relay.annotation.compiler_begin(x, "mine")`."""

from ..ops.annotation import checkpoint, compiler_begin, compiler_end, on_device, simulated_quantize, stop_fusion

__all__ = ["checkpoint", "compiler_begin", "compiler_end", "on_device", "simulated_quantize", "stop_fusion"]
