"""RemoveRedundantReshape: of calls that only say another shape the last one stays, behind what doesn't care for shapes."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ..expr import Call, Constant, RelaxExpr, const
from ..ops.manipulate import reshape
from ..struct_info import TensorStructInfo
from .identities import is_by_element, is_known
from .rewriting import Rewriter, Rules, rule_pass

RESHAPES = ("relax.reshape", "relax.squeeze", "relax.expand_dims", "relax.flatten")


def to_shape_of(value: Any, info: Any) -> Any:
    """A value in the shape of a tensor; itself if it has that shape."""
    return value if value.struct_info == info else reshape(value, list(info.extents))


def _one_reshape(graph: Rewriter, call: Call) -> Any:
    """A shape that is there already, or of a tensor that was given another one before."""
    inner = graph.call(call.args[0], *RESHAPES)
    source = call.args[0] if inner is None else inner.args[0]
    info = source.struct_info
    if not is_known(call.struct_info) or not is_known(info) or (inner is None and info != call.struct_info):
        return None
    return to_shape_of(source, call.struct_info)


def _behind(graph: Rewriter, call: Call) -> Any:
    """`f(reshape(x))` is `reshape(f(x))` where `f` works on each element, beside numbers and constants along the last axis."""
    if not is_by_element(call) or not is_known(call.struct_info):
        return None
    views = [(n, inner) for n, arg in enumerate(call.args) if (inner := graph.only(arg, *RESHAPES)) is not None]
    # Of two nothing says that their sources have one shape.
    if len(views) != 1:
        return None
    place, inner = views[0]
    source = inner.args[0].struct_info
    if not is_known(source) or not source.extents or call.struct_info.extents != inner.struct_info.extents:  # type: ignore[attr-defined]
        return None
    # A vector along the last axis means the same only beside an equal one: from (2, 12) to (4, 6) it doesn't.
    last = as_int(source.extents[-1]), as_int(inner.struct_info.extents[-1] if inner.struct_info.extents else 0)  # type: ignore[attr-defined]
    if not all(n == place or _fits(arg, last[0] if last[0] == last[1] else None) for n, arg in enumerate(call.args)):
        return None
    args = [inner.args[0] if n == place else _one_number(arg) for n, arg in enumerate(call.args)]
    made = Call(call.op, args, call.attrs, call.sinfo_args)
    if made.struct_info.extents != source.extents:  # type: ignore[attr-defined]
        return None
    return to_shape_of(made, call.struct_info)


def _one_number(arg: Any) -> Any:
    """An operand; one number with one axis at most, which it is beside tensors of any shape."""
    is_one = isinstance(arg, Constant) and len(arg.data.shape) > 1 and arg.view().size == 1
    return const(arg.view().reshape(1)) if is_one else arg


def _fits(arg: Any, last: int | None) -> bool:
    """Whether an operand means the same beside another shape: one number, or a vector along the last axis, which is the same."""
    info = arg.struct_info if isinstance(arg, RelaxExpr) else None
    if not isinstance(info, TensorStructInfo):
        return True
    if info.ndim == 0 or (isinstance(arg, Constant) and arg.view().size == 1):
        return True
    return isinstance(arg, Constant) and info.ndim == 1 and last is not None and as_int(info.extents[0]) == last  # type: ignore[index]


REDUNDANT: Rules = {name: [_one_reshape] for name in RESHAPES}
RULES: Rules = {**REDUNDANT, "": [_behind]}


def RemoveRedundantReshape() -> ModulePass:
    """A pass: a reshape of a reshape is one, and one to the shape that there is none."""
    return rule_pass("RemoveRedundantReshape", REDUNDANT)
