"""What the arguments of a function are, as the workers know it: `TensorInfo(dtype, shape)` for each array."""

from __future__ import annotations

from ..tune.measure.arg_info import ArgInfo, TensorInfo, entry_func, shapes_of

__all__ = ["ArgInfo", "TensorInfo", "entry_func", "shapes_of"]
