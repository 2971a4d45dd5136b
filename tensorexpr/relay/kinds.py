"""How the elements of an operator's result depend on its operands (`relay.op.OpPattern`)."""

from __future__ import annotations

from ..relax.ops.row import Pattern
from ..tir.op_registry import Op

ATTRIBUTE = "TOpPattern"

# The operators of graphs that are known by other names there, and those that only Relay has.
_TWINS = {
    "cast": "astype", "cast_like": "astype", "concatenate": "concat", "stack": "concat", "transpose": "permute_dims",
    "nn.batch_flatten": "flatten", "nn.batch_matmul": "matmul", "nn.dense": "matmul", "nn.matmul": "matmul",
    "nn.leaky_relu": "nn.leakyrelu",
    "nn.contrib_conv2d_NCHWc": "nn.conv2d", "nn.contrib_dense_pack": "matmul", "nn.contrib_depthwise_conv2d_NCHWc": "nn.conv2d",
    "nn.global_avg_pool2d": "nn.avg_pool2d", "nn.global_max_pool2d": "nn.max_pool2d", "reverse": "flip", "reshape_like": "reshape",
}  # fmt: skip
_OWN = {
    "copy": Pattern.ELEMWISE, "nn.bias_add": Pattern.BROADCAST, "layout_transform": Pattern.INJECTIVE, "slice_like": Pattern.INJECTIVE,
    "fast_erf": Pattern.ELEMWISE, "fast_exp": Pattern.ELEMWISE, "fast_tanh": Pattern.ELEMWISE, "reinterpret": Pattern.ELEMWISE,
    **dict.fromkeys(("qnn.quantize", "qnn.dequantize", "qnn.requantize"), Pattern.ELEMWISE),
    **dict.fromkeys(("qnn.conv2d", "qnn.dense", "qnn.batch_matmul"), Pattern.OUT_FUSABLE),
}  # fmt: skip


def kind_of(op: Op) -> int | None:
    """What was registered, else as for the same operator of graphs; None for an operator that nothing is known of."""
    own = op.get_attr(ATTRIBUTE)
    found = _OWN.get(str(op)) if own is None else own
    found = Op.of(f"relax.{_TWINS.get(op, op)}").get_attr(ATTRIBUTE) if found is None else found
    return None if found is None else int(found)


__all__ = ["ATTRIBUTE", "kind_of"]
