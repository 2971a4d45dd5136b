"""The operators of graphs as functions that make calls: `relax.op.add(x, y)`, `relax.op.nn.softmax(x)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.algebraic import adt_field, adt_make, adt_matches, adt_unmatched
from ..ops.calls import (
    assert_op,
    call,
    call_dps_packed,
    call_inplace_packed,
    call_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
    element,
    invoke_closure,
    invoke_pure_closure,
    make_closure,
    print,
    shape_of,
)  # fmt: skip
from ..ops.create import arange, eye, eye_like, full, full_like, ones, ones_like, tril, triu, zeros, zeros_like
from ..ops.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    astype,
    atan,
    atanh,
    bitcast,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceil,
    clip,
    cos,
    cosh,
    divide,
    equal,
    erf,
    ewise_fma,
    exp,
    floor,
    floor_divide,
    floor_mod,
    gcd,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    masked_fill,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    relu,
    right_shift,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    where,
)  # fmt: skip
from ..ops.indexing import compress, gather, gather_elements, gather_nd, one_hot, reverse_sequence, scatter_elements, scatter_nd
from ..ops.inspection import of_tensor
from ..ops.layout import collapse_sum_like, collapse_sum_to, hint_on_device, layout_transform, to_vdevice, wrap_param
from ..ops.linear import dense, det, einsum, linear, matmul
from ..ops.loop import loop
from ..ops.manipulate import (
    broadcast_to,
    concat,
    dynamic_strided_slice,
    expand_dims,
    flatten,
    flip,
    permute_dims,
    repeat,
    reshape,
    split,
    squeeze,
    strided_slice,
    take,
    tile,
)  # fmt: skip
from ..ops.narrow import narrow_cast
from ..ops.order import argsort, bincount, cumprod, cumsum, multinomial_from_uniform, nonzero, repeat_places, sort, topk, unique
from ..ops.quantized import dequantize, quantize, requantize
from ..ops.reduce import argmax, argmin, max, mean, min, prod, std, sum, variance
from ..ops.sequences import (
    has_value,
    null_value,
    sequence_at,
    sequence_concat,
    sequence_erase,
    sequence_insert,
    sequence_length,
    sequence_split,
)  # fmt: skip
from ..ops.shape_values import reshaped_extents, shape_to_tensor, tensor_to_shape
from ..ops.signal import dft
from ..ops.sparse import sparse_fill_empty_rows, sparse_reshape
from ..ops.strings import lookup, regex_full_match, string_concat, string_equal, string_normalize, string_split, tf_idf
from ..struct_info import RelaxExpr
from . import builtin, ccl, grad, image, inspect, linalg, memory, nn, vm

_PYTHON: dict[str, Callable[..., Any]] = {
    "add": add, "astype": astype, "call": call, "divide": divide, "element": element, "floor_divide": floor_divide,
    "floor_mod": floor_mod, "greater": greater, "greater_equal": greater_equal, "less": less, "less_equal": less_equal,
    "multiply": multiply, "negative": negative, "of_tensor": of_tensor, "power": power, "shape_of": shape_of, "subtract": subtract,
}  # fmt: skip
RelaxExpr._operators.update(_PYTHON)

__all__ = [
    "abs", "acos", "acosh", "add", "adt_field", "adt_make", "adt_matches", "adt_unmatched", "arange", "argmax", "argmin", "argsort",
    "asin", "asinh", "assert_op", "astype", "atan", "atanh", "bincount", "bitcast", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast_to", "builtin", "call_dps_packed", "call_inplace_packed", "call_packed", "call_pure_packed", "call_tir",
    "call_tir_inplace", "call_tir_with_grad", "ccl", "ceil", "clip", "collapse_sum_like", "collapse_sum_to", "compress", "concat", "cos",
    "cosh", "cumprod", "cumsum", "dense", "dequantize", "det", "dft", "divide", "dynamic_strided_slice", "einsum", "equal", "erf",
    "ewise_fma", "exp", "expand_dims", "eye", "eye_like", "flatten", "flip", "floor", "floor_divide", "floor_mod", "full", "full_like",
    "gather", "gather_elements", "gather_nd", "gcd", "grad", "greater", "greater_equal", "has_value", "hint_on_device", "image",
    "inspect", "invoke_closure", "invoke_pure_closure", "isfinite", "isinf", "isnan", "layout_transform", "left_shift", "less",
    "less_equal", "linalg", "linear", "log", "logical_and", "logical_not", "logical_or", "logical_xor", "lookup", "loop", "make_closure",
    "masked_fill", "matmul", "max", "maximum", "mean", "memory", "min", "minimum", "mod", "multinomial_from_uniform", "multiply",
    "narrow_cast", "negative", "nn", "nonzero", "not_equal", "null_value", "one_hot", "ones", "ones_like", "permute_dims", "power",
    "print", "prod", "quantize", "regex_full_match", "relu", "repeat", "repeat_places", "requantize", "reshape", "reshaped_extents",
    "reverse_sequence", "right_shift", "round", "rsqrt", "scatter_elements", "scatter_nd", "sequence_at", "sequence_concat",
    "sequence_erase", "sequence_insert", "sequence_length", "sequence_split", "shape_of", "shape_to_tensor", "sigmoid", "sign", "sin",
    "sinh", "sort", "sparse_fill_empty_rows", "sparse_reshape", "split", "sqrt", "square", "squeeze", "std", "strided_slice",
    "string_concat", "string_equal", "string_normalize", "string_split", "subtract", "sum", "take", "tan", "tanh", "tensor_to_shape",
    "tf_idf", "tile", "to_vdevice", "topk", "tril", "triu", "unique", "variance", "vm", "where", "wrap_param", "zeros", "zeros_like",
]  # fmt: skip
