"""Products of matrices."""

from __future__ import annotations

from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op


@onnx_op("MatMul")
def matmul(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Products as NumPy's matmul has them; sums of float16 are those of float32."""
    if ctx.dtype(0) == "float16":
        return R.astype(R.matmul(inputs[0], inputs[1], "float32"), "float16")
    return R.matmul(inputs[0], inputs[1])


@onnx_op("Gemm")
def gemm(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """alpha A B + beta C, with A and B transposed where the attributes say so."""
    a = R.permute_dims(inputs[0]) if attrs.bool("transA", False) else inputs[0]
    b = R.permute_dims(inputs[1]) if attrs.bool("transB", False) else inputs[1]
    alpha, beta, dtype = attrs.float("alpha", 1.0), attrs.float("beta", 1.0), ctx.dtype(0)
    found = R.matmul(a, b)
    if alpha != 1.0:
        found = R.multiply(found, relax.const(alpha, dtype))
    if not ctx.has(2) or beta == 0.0:
        return found
    c = inputs[2] if beta == 1.0 else R.multiply(inputs[2], relax.const(beta, dtype))
    return R.add(found, c)
