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
_ALIKE = {
    Pattern.ELEMWISE: "log2 log10 trunc fixed_point_multiply trilu",
    Pattern.BROADCAST: "trunc_divide trunc_mod broadcast_to_like annotation.simulated_quantize",
    Pattern.INJECTIVE: """contrib_reverse_reshape strided_set sequence_mask unravel_index meshgrid adv_index matrix_set_diag
        invert_permutation nn.upsampling nn.upsampling3d image.resize1d image.resize3d image.crop_and_resize image.affine_grid
        vision.yolo_reorg nn.mirror_pad nn.space_to_depth nn.depth_to_space nn.space_to_batch_nd nn.batch_to_space_nd nn.dilate
        nn.bitpack""",
    Pattern.REDUCTION: "all any logsumexp",
    Pattern.OUT_FUSABLE: """nn.global_max_pool1d nn.global_max_pool3d nn.global_avg_pool1d nn.global_avg_pool3d nn.max_pool2d_grad
        nn.avg_pool2d_grad nn.l2_normalize nn.fast_softmax nn.deformable_conv2d nn.correlation nn.bitserial_conv2d nn.bitserial_dense
        vision.roi_align vision.roi_pool""",
}
_OWN = {
    "copy": Pattern.ELEMWISE, "nn.bias_add": Pattern.BROADCAST, "layout_transform": Pattern.INJECTIVE, "slice_like": Pattern.INJECTIVE,
    "fast_erf": Pattern.ELEMWISE, "fast_exp": Pattern.ELEMWISE, "fast_tanh": Pattern.ELEMWISE, "reinterpret": Pattern.ELEMWISE,
    **dict.fromkeys(("qnn.quantize", "qnn.dequantize", "qnn.requantize"), Pattern.ELEMWISE),
    **dict.fromkeys(("qnn.conv2d", "qnn.dense", "qnn.batch_matmul"), Pattern.OUT_FUSABLE),
    **{name: kind for kind, names in _ALIKE.items() for name in names.split()},
}  # fmt: skip


def kind_of(op: Op) -> int | None:
    """What was registered, else as for the same operator of graphs; None for an operator that nothing is known of."""
    own = op.get_attr(ATTRIBUTE)
    found = _OWN.get(str(op)) if own is None else own
    found = Op.of(f"relax.{_TWINS.get(op, op)}").get_attr(ATTRIBUTE) if found is None else found
    return None if found is None else int(found)


__all__ = ["ATTRIBUTE", "kind_of"]
