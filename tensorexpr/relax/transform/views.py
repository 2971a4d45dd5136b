"""RewriteDataflowReshape: tensor functions that change no order of elements become views, which copy nothing."""

from __future__ import annotations

from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...te.operation import ComputeOp
from ...tir.arithmetic import as_int
from ...tir.expr import ProducerLoad
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..analysis import has_reshape_pattern
from ..expr import Call, Function, Tuple
from ..op import reshape
from ..struct_info import TensorStructInfo
from ..tensor_function import plain_tensors
from ..visitor import Mutator
from .passes import each_function

VIEW = "relax.reshape"


def _is_view(func: PrimFunc) -> bool:
    """Whether a tensor function of constant shapes copies its one argument to its one result in the order in which elements lie."""
    buffers = list(func.buffer_map.values())
    known = all(as_int(extent) is not None for buffer in buffers for extent in buffer.shape)
    is_alike = len(func.params) == len(buffers) == 2 and known and buffers[0].dtype == buffers[1].dtype
    return is_alike and _may_copy(func) and has_reshape_pattern(func)


def _may_copy(func: PrimFunc) -> bool:
    """False if the function's computation is something else than a copy, which is told without making its blocks."""
    try:
        *_, result = plain_tensors(func)
    except DeclarationError:
        return True
    return isinstance(result.op, ComputeOp) and isinstance(result.op.body[0], ProducerLoad)


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
        # Proved once for each function, which layers share.
        if name not in self._known:
            func: Any = self._mod[name]
            self._known[name] = isinstance(func, PrimFunc) and _is_view(func)
        if not self._known[name] or not isinstance(args, Tuple) or not isinstance(info, TensorStructInfo) or info.extents is None:
            return expr
        return reshape(args.fields[0], info.extents)


def RewriteDataflowReshape() -> ModulePass:
    """A pass: calls of tensor functions that only change a tensor's shape become `R.reshape`, which is a view of the same memory."""

    def run(func: Function, mod: IRModule) -> Function:
        return _Views(mod).function(func)

    return each_function("RewriteDataflowReshape", run)
