"""Declare: tensor computations as expressions over named axes.

    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

tensor, operation    the values and the nodes of a computation
declare, reducer     placeholder, compute, reduce_axis; sum, max, min, comm_reducer; definition: what compute makes of its function
tag                  tags for all that is declared in a scope
extern               tensors that a statement or a foreign function computes
tensor_compute       computes over slices, by a tensor intrinsic
recurrence           scan: one row of time after the other; by scan_op, and scan_body, what one step computes
elementwise          operators on whole tensors
verify, bounds       what makes a definition well formed, and free of reads out of bounds; lazy_select: arms that may not be read
thread_axis          what loops are bound to
specialized_condition    conditions that the author of a schedule says hold
dag, dag_text, flops, identity, access     the graph: order, text, cost, equality, how producers are read
serialize, serialize_extern     the graph as JSON
graph_nodes          the graph as the text that TVM saves
to_prim_func         functions of blocks; by compute_block, extern_block and index_dtype; from_prim_func, the way back
tensor_intrin, row_crossing     what a few instructions compute, for tensorize
intrinsics           tensor intrinsics that come with the package
combiner_laws        whether a reduction may be done in parts
autodiff             gradient; by derivative, gradient_terms and index_equations
evaluation, reference     what a computation means, on NumPy arrays; by blocks, contraction and reductions
tolerance            how far two results of a computation may differ
"""

from typing import TYPE_CHECKING

from ..later import later
from ..tir.arithmetic import add, const, div, floordiv, floormod, indexdiv, indexmod, multiply, subtract, truncdiv, truncmod
from ..tir.builtin import all, any
from ..tir.foreign import trace
from ..tir.intrin import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    fmod,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from . import elementwise as _elementwise
from . import tag
from .declare import compute, placeholder, reduce_axis, size_var, var
from .extern import ExternOp, extern, extern_primfunc
from .operation import BaseComputeOp, ComputeOp, Operation, PlaceholderOp
from .reducer import comm_reducer, max, min, sum
from .specialized_condition import SpecializedCondition
from .tag import tag_scope
from .tensor import Tensor, TensorSlice
from .thread_axis import thread_axis

if TYPE_CHECKING:
    from ..arith.index_map import AXIS_SEPARATOR
    from ..schedule import Schedule, Stage, create_schedule
    from . import intrinsics
    from .autodiff import gradient
    from .hybrid_op import HybridOp
    from .recurrence import scan
    from .scan_op import ScanOp
    from .tensor_compute import TensorComputeOp, TensorIntrinCall
    from .tensor_intrin import TensorIntrin, decl_tensor_intrin
    from .to_prim_func import create_prim_func

__all__ = [
    "AXIS_SEPARATOR",
    "BaseComputeOp",
    "ComputeOp",
    "ExternOp",
    "HybridOp",
    "Operation",
    "PlaceholderOp",
    "ScanOp",
    "Schedule",
    "SpecializedCondition",
    "Stage",
    "Tensor",
    "TensorComputeOp",
    "TensorIntrin",
    "TensorIntrinCall",
    "TensorSlice",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "create_prim_func",
    "create_schedule",
    "decl_tensor_intrin",
    "div",
    "erf",
    "exp",
    "extern",
    "extern_primfunc",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "gradient",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "intrinsics",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
    "max",
    "max_value",
    "min",
    "min_value",
    "multiply",
    "nearbyint",
    "placeholder",
    "popcount",
    "power",
    "reduce_axis",
    "round",
    "rsqrt",
    "scan",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "subtract",
    "sum",
    "tag",
    "tag_scope",
    "tan",
    "tanh",
    "thread_axis",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
del _elementwise

# What lives in a higher row and what few programs need.
_HOMES = {
    "tensorexpr.schedule": "Schedule Stage create_schedule schedule=.",
    "tensorexpr.arith.index_map": "AXIS_SEPARATOR",
    ".autodiff": "gradient",
    ".hybrid_op": "HybridOp",
    ".recurrence": "scan",
    ".scan_op": "ScanOp",
    ".tensor_compute": "TensorComputeOp TensorIntrinCall",
    ".tensor_intrin": "TensorIntrin decl_tensor_intrin",
    ".to_prim_func": "create_prim_func",
}

__getattr__, __dir__ = later(__name__, _HOMES, submodules="hybrid intrinsics")
