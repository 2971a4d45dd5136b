"""Passes that put other calls in place of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ...relax import expr as graph
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ..alter_layout import as_sum, converted
from ..atrous import flattened
from ..constants import Known, folded, static
from ..explicit_padding import without_pad
from ..expr import Call, Tuple, const
from ..lazy_gradient import without_fills
from ..ops.elementwise import add, divide, multiply, negative, ones_like, sqrt
from ..ops.transform import expand_dims
from ..parallel import BATCH_MATMUL, CONV2D, DENSE, STACKED_DENSE, Combined, Kind
from ..scale_axes import Backward, Forward
from ..simplify import Simplifying
from ..split_args import split_concatenation
from ..ty import type_of
from .common import each_call, each_function


def FoldConstant(fold_qnn: bool = False) -> ModulePass:
    """Calls of constants as their values.

    Args:
        fold_qnn: whether those of quantized tensors are folded, too.
    """
    return each_call("FoldConstant", lambda call: folded(call) if fold_qnn or not str(call.op).startswith("qnn.") else None, 2, Known)


FoldConstantExpr = FoldConstant


def DynamicToStatic() -> ModulePass:
    """Operators that are told shapes by tensors as those of attributes, where constants, or shapes of tensors, say them."""
    return each_call("DynamicToStatic", static, 2, Known)


def _normalised(call: Any) -> Any:
    """`batch_norm` as a product and a sum for each channel; `dropout` as its operand. Both numbers are made as TVM's pass makes them."""
    if call.op == "nn.dropout":
        return Tuple((call.args[0], ones_like(call.args[0])))
    if call.op != "nn.batch_norm":
        return None
    data, gamma, beta, mean, variance = call.args
    given = call.attrs
    ndim = len(data.checked_type.shape)
    dtype = data.checked_type.dtype
    scale = divide(const(1.0, dtype), sqrt(add(variance, const(given["epsilon"], dtype))))
    scale = multiply(scale, gamma) if given["scale"] else scale
    shift = multiply(negative(mean), scale)
    shift = add(shift, beta) if given["center"] else shift
    behind = ndim - 1 - given["axis"] % ndim
    scale, shift = (expand_dims(one, 1, behind) if behind else one for one in (scale, shift))
    return Tuple((add(multiply(data, scale), shift), mean, variance))


def SimplifyInference() -> ModulePass:
    """Batch norms of fixed statistics as a product and a sum, and no dropout."""
    return each_call("SimplifyInference", _normalised, is_typed=True)


def CanonicalizeOps() -> ModulePass:
    """`bias_add` as a sum."""
    return each_call("CanonicalizeOps", lambda call: as_sum(call) if call.op == "nn.bias_add" else None, 3, is_typed=True)


_FAST = {"exp": "fast_exp", "erf": "fast_erf", "tanh": "fast_tanh", "nn.softmax": "nn.fast_softmax"}


def FastMath() -> ModulePass:
    """Exponentials, error functions and hyperbolic tangents by the operators that are allowed a few last digits."""
    return each_call("FastMath", lambda call: Call(Op.of(_FAST[call.op]), call.args, call.attrs) if call.op in _FAST else None, 4)


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> ModulePass:
    """What programs registered in place of calls: `relay.op.register_legalize("nn.dense", f)`; f(attrs, inputs, types) or None."""

    def rewrite(call: Any) -> Any:
        own = call.op.get_attr(legalize_map_attr_name)
        if own is None:
            return None
        return own(call.attrs, call.args, [*(type_of(one.struct_info) for one in call.args), type_of(call.struct_info)])

    return each_call("Legalize", rewrite, 1, is_typed=True)


def FoldExplicitPadding() -> ModulePass:
    """Borders as the padding of convolutions and pools that read them."""
    return each_call("FoldExplicitPadding", without_pad, is_typed=True)


def _by_product(call: Any) -> Any:
    divisor: Any = call.args[1] if call.op == "divide" else None
    if not isinstance(divisor, graph.Constant):
        return None
    known = np.asarray(divisor.data.numpy())
    return multiply(call.args[0], const(1 / known, str(divisor.data.dtype))) if known.dtype.kind == "f" and known.all() else None


def LazyGradientInit() -> ModulePass:
    """Sums and products with zeros and ones, of which derivatives are full, as what they are; zero times anything is zero, as in TVM."""
    return each_call("LazyGradientInit", without_fills)


def FlattenAtrousConv() -> ModulePass:
    """Convolutions between `space_to_batch_nd` and `batch_to_space_nd` as those with dilation."""
    return each_call("FlattenAtrousConv", flattened)


def SplitArgs(max_function_args: int) -> ModulePass:
    """Concatenations in several steps, each of which takes and returns no more than so many arguments; 0 is any number."""
    return each_call("SplitArgs", lambda call: split_concatenation(call, max_function_args), 1)


def DivToMul() -> ModulePass:
    """Quotients by constants of floats as products."""
    return each_call("DivToMul", _by_product)


def BackwardFoldScaleAxis() -> ModulePass:
    """Factors of channels into the weights of convolutions and dense products in front of them."""
    return each_function("BackwardFoldScaleAxis", lambda func, mod: Backward(func).visit(func), 3, is_typed=True)


def ForwardFoldScaleAxis() -> ModulePass:
    """Factors of channels into the weights of convolutions and dense products behind them."""
    return each_function("ForwardFoldScaleAxis", lambda func, mod: Forward(func).visit(func), 3, is_typed=True)


def FoldScaleAxis() -> ModulePass:
    """Factors of channels into the weights of convolutions and dense products before or behind them, and what is constant then."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        # Not a sequence, whose steps a context of a lower level leaves out.
        for step in (BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()):
            mod = step.transform(mod, ctx)
        return mod

    return ModulePass("FoldScaleAxis", lambda func, ctx: func, 3, by_user=False, module_func=on_module)


def SimplifyExpr() -> ModulePass:
    """Calls that say the same with fewer operators: `relay.simplify` lists the rules."""
    return each_function("SimplifyExpr", lambda func, mod: Simplifying().visit(func), is_typed=True)


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> ModulePass:
    """Operators in other layouts, with as few transforms as possible.

    Args:
        desired_layouts: {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]}: layouts of data and weights. What isn't named
            takes the layout that its operands are in. With blocks of channels, such as ["NCHW16c", "OIHW16i16o"], both are stated.
    """
    return each_function("ConvertLayout", lambda func, mod: converted(func, desired_layouts), 3, is_typed=True)


def _combine(name: str, kind: Kind, least: int) -> ModulePass:
    return each_function(name, lambda func, mod: Combined(func, kind, least).visit(func), 4, is_typed=True)


def CombineParallelConv2D(min_num_branches: int = 3) -> ModulePass:
    """Convolutions of one tensor, and what follows all of them, as one.

    Args:
        min_num_branches: how many there are at least.
    """
    return _combine("CombineParallelConv2D", CONV2D, min_num_branches)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> ModulePass:
    """Products of one operand with several weights, and what follows all of them, as one.

    Args:
        min_num_branches: how many there are at least.
        to_batch: weights of one shape as a batch; else weights stand beside each other.
    """
    return _combine("CombineParallelDense", STACKED_DENSE if to_batch else DENSE, min_num_branches)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> ModulePass:
    """As `CombineParallelDense`, of batches of products; weights stand beside each other."""
    return _combine("CombineParallelBatchMatmul", BATCH_MATMUL, min_num_branches)


__all__ = [
    "BackwardFoldScaleAxis",
    "CanonicalizeOps",
    "CombineParallelBatchMatmul",
    "CombineParallelDense",
    "ConvertLayout",
    "DivToMul",
    "DynamicToStatic",
    "FastMath",
    "FlattenAtrousConv",
    "FoldConstant",
    "FoldConstantExpr",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "LazyGradientInit",
    "Legalize",
    "SimplifyExpr",
    "SimplifyInference",
    "SplitArgs",
]
