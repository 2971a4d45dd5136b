"""The operators of Relay as functions that make calls: `relay.op.add(x, y)`, `relay.nn.relu(x)`; what programs register about them."""

from __future__ import annotations

from typing import Any

from ...errors import DeclarationError
from ...later import later, stand_for
from ...relax.ops.row import Pattern as _Pattern
from ...tir.op_registry import Op as Op
from ...tir.op_registry import register_op_attr
from ..debugging import debug
from ..kinds import ATTRIBUTE, kind_of
from ..ops.annotation import device_copy, on_device
from ..ops.create import arange, full, full_like, ndarray_size, ones, shape_of, zeros
from ..ops.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    cast_like,
    ceil,
    clip,
    copy,
    cos,
    cosh,
    divide,
    equal,
    erf,
    exp,
    fixed_point_multiply,
    floor,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    ones_like,
    power,
    reinterpret,
    right_shift,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    trunc_divide,
    trunc_mod,
    where,
    zeros_like,
)  # fmt: skip
from ..ops.reduce import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    argwhere,
    cumprod,
    cumsum,
    dft,
    logsumexp,
    max,
    mean,
    mean_std,
    mean_variance,
    min,
    prod,
    searchsorted,
    segment_sum,
    sort,
    std,
    stft,
    sum,
    topk,
    unique,
    variance,
)  # fmt: skip
from ..ops.row import ROWS
from ..ops.sparse import sparse_fill_empty_rows, sparse_reshape
from ..ops.transform import (
    adv_index,
    broadcast_to,
    broadcast_to_like,
    collapse_sum_like,
    collapse_sum_to,
    concatenate,
    einsum,
    expand_dims,
    gather,
    gather_nd,
    invert_permutation,
    layout_transform,
    matrix_set_diag,
    meshgrid,
    one_hot,
    repeat,
    reshape,
    reshape_like,
    reverse,
    reverse_reshape,
    reverse_sequence,
    scatter,
    scatter_add,
    scatter_elements,
    scatter_nd,
    sequence_mask,
    slice_like,
    sliding_window,
    sparse_to_dense,
    split,
    squeeze,
    stack,
    strided_set,
    strided_slice,
    take,
    tile,
    transpose,
    trilu,
    unravel_index,
)  # fmt: skip
from . import image, nn, random, vision

OpPattern = _Pattern
for _name in ROWS:
    if (_kind := kind_of(Op.of(_name))) is not None:
        Op.of(_name).set_attr(ATTRIBUTE, _kind)
stand_for(__name__, "transform=..ops.transform")
_LATER = {"..expr": "const", "..strategies": "OpImplementation OpSpecialization OpStrategy"}
__getattr__, __dir__ = later(__name__, _LATER, "annotation op strategy")


def get(op_name: str) -> Op:
    """The operator of a name, such as "nn.conv2d".

    Raises:
        DeclarationError: if there is none.
    """
    if op_name not in ROWS:
        return Op.get(op_name)
    return Op.of(op_name)


def list_op_names() -> list[str]:
    """The names of all operators."""
    return sorted(ROWS)


def register_pattern(op_name: str, pattern: int, level: int = 10) -> Any:
    """State how the elements of an operator's result depend on its operands (`OpPattern`)."""
    return register_op_attr(op_name, "TOpPattern", pattern, level)


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """State what stands in place of calls of an operator: `f(attrs, inputs, types, result type)` for `relay.transform.AlterOpLayout`."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


def register_infer_correct_layout(op_name: str, infer_layout: Any = None, level: int = 10) -> Any:
    """State how an operator is in another layout of its operands: `f(attrs, new layouts, old layouts, old types)` returns an
    `InferCorrectLayoutOutput` of `relay.transform.infer_layout_utils`, which the passes of layouts follow."""
    return register_op_attr(op_name, "FInferCorrectLayout", infer_layout, level)


def register_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """State what stands in place of calls of an operator: `f(attrs, inputs, types)` for `relay.transform.Legalize`."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = 10) -> Any:
    """State what `relay.transform.ToMixedPrecision` does of calls: `f(call, dtype)` returns a kind, 0 for half precision, 1 for that of the
    operands and 2 for none, with the dtypes of sums and of the result."""
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)


def register_strategy(op_name: str, fstrategy: Any = None, level: int = 10) -> Any:
    """State the implementations of an operator: `f(attrs, inputs, out_type, target)` returns an `OpStrategy`, which builds follow."""
    return register_op_attr(op_name, "FTVMStrategy", fstrategy, level)


def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """State what an operator computes, `f(attrs, inputs, out_type)`, in builds where `register_schedule` says how."""
    return register_op_attr(op_name, "FTVMCompute", compute, level)


def register_schedule(op_name: str, schedule: Any, level: int = 10) -> Any:
    """State the schedule of an operator: `f(attrs, outs, target)`, of what `register_compute` stated, else of what the operator means."""

    def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
        # Here, as it loads AutoTVM.
        from ..strategies import COMPUTE, OpStrategy, meaning_on_tensors

        made = OpStrategy()
        op = Op.of(op_name)
        made.add_implementation(op.get_attr(COMPUTE) or meaning_on_tensors(op), schedule, f"{op_name}.registered")
        return made

    return register_strategy(op_name, strategy, level)


def register_injective_schedule(op_name: str, level: int = 10) -> Any:
    """As `register_schedule` with the schedule by rules, which knows kinds of operators by what they compute."""
    from ..strategies import scheduled_by_rules

    return register_schedule(op_name, scheduled_by_rules, level)


register_broadcast_schedule = register_reduce_schedule = register_injective_schedule


def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> Any:
    """Refused: gradients follow from the operators of graphs.

    Raises:
        DeclarationError: always.
    """
    raise DeclarationError(f"{op_name}: gradients are those of the graphs' operators, see relax.transform.Gradient; none can be registered")


__all__ = [
    "Op",
    "OpPattern",
    "abs",
    "acos",
    "acosh",
    "add",
    "adv_index",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "broadcast_to_like",
    "cast",
    "cast_like",
    "ceil",
    "clip",
    "collapse_sum_like",
    "collapse_sum_to",
    "concatenate",
    "copy",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "debug",
    "device_copy",
    "dft",
    "divide",
    "einsum",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "fixed_point_multiply",
    "floor",
    "floor_divide",
    "floor_mod",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "get",
    "greater",
    "greater_equal",
    "image",
    "invert_permutation",
    "isfinite",
    "isinf",
    "isnan",
    "layout_transform",
    "left_shift",
    "less",
    "less_equal",
    "list_op_names",
    "log",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matrix_set_diag",
    "max",
    "maximum",
    "mean",
    "mean_std",
    "mean_variance",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "multiply",
    "ndarray_size",
    "negative",
    "nn",
    "not_equal",
    "on_device",
    "one_hot",
    "ones",
    "ones_like",
    "power",
    "prod",
    "random",
    "reinterpret",
    "repeat",
    "reshape",
    "reshape_like",
    "reverse",
    "reverse_reshape",
    "reverse_sequence",
    "right_shift",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "scatter_elements",
    "scatter_nd",
    "searchsorted",
    "segment_sum",
    "sequence_mask",
    "shape_of",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice_like",
    "sliding_window",
    "sort",
    "sparse_fill_empty_rows",
    "sparse_reshape",
    "sparse_to_dense",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "std",
    "stft",
    "strided_set",
    "strided_slice",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "trilu",
    "trunc",
    "trunc_divide",
    "trunc_mod",
    "unique",
    "unravel_index",
    "variance",
    "vision",
    "where",
    "zeros",
    "zeros_like",
]  # fmt: skip
