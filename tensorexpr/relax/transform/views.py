"""RewriteDataflowReshape: tensor functions that change no order of elements become views, which copy nothing."""

from __future__ import annotations

from typing import Any

from ...arith.analyzer import Analyzer
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...te.operation import ComputeOp
from ...tir.arithmetic import as_int, const
from ...tir.expr import PrimExpr, ProducerLoad
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..expr import Call, Function, Tuple
from ..op import reshape
from ..struct_info import TensorStructInfo
from ..tensor_function import plain_tensors
from ..visitor import Mutator
from .passes import each_function


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a tensor function writes each element of its one argument to the same place of its one result, counted in rows."""
    try:
        source, result = plain_tensors(func)
    except (DeclarationError, ValueError):
        return False
    op = result.op
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or source.dtype != result.dtype:
        return False
    load = op.body[0]
    if not isinstance(load, ProducerLoad) or load.producer is not source:
        return False
    if any(as_int(one) is None for one in (*source.shape, *result.shape)):
        return False
    analyzer = Analyzer()
    for axis in op.axis:
        if axis.dom is not None:
            analyzer.bind(axis.var, axis.dom)
    here = _place([axis.var for axis in op.axis], result.shape)
    return as_int(analyzer.simplify(_place(load.indices, source.shape) - here)) == 0


def _place(indices: Any, shape: Any) -> PrimExpr:
    place: PrimExpr | None = None
    for index, extent in zip(indices, shape, strict=True):
        if as_int(extent) != 1:
            place = index if place is None else place * (as_int(extent) or 0) + index
    return const(0, "int32") if place is None else place


class _Views(Mutator):
    """Calls of such functions as reshapes."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self._mod = mod
        self._known: dict[str, bool] = {}

    def rewrite(self, expr: Any) -> Any:
        """A reshape in place of a call that is one."""
        if not isinstance(expr, Call) or expr.op != "relax.call_tir" or not isinstance(expr.args[0], GlobalVar):
            return expr
        name, args, info = expr.args[0].name_hint, expr.args[1], expr.sinfo_args[0]
        if name not in self._known:
            func: Any = self._mod[name]
            self._known[name] = isinstance(func, PrimFunc) and has_reshape_pattern(func)
        if not self._known[name] or not isinstance(args, Tuple) or not isinstance(info, TensorStructInfo) or info.extents is None:
            return expr
        return reshape(args.fields[0], info.extents)


def RewriteDataflowReshape() -> ModulePass:
    """A pass: calls of tensor functions that only change a tensor's shape become `R.reshape`, which is a view of the same memory."""

    def run(func: Function, mod: IRModule) -> Function:
        return _Views(mod).function(func)

    return each_function("RewriteDataflowReshape", run)
