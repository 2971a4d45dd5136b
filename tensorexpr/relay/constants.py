"""Calls of constants as their values, and operators whose shapes are values as those of attributes where these are known.

dyn.reshape(%x, shape_of(%y))    with %y: Tensor[(8, 3), float32]    reshape(%x, newshape=[8, 3])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..relax.evaluator import Evaluator
from ..relax.expr import owned
from ..relax.struct_info import TensorStructInfo
from ..tir.arithmetic import as_int
from ..tir.function import IRModule
from ..tir.op_registry import Op
from . import op
from .expr import Call, Constant, Function, Let, Tuple, as_expr, const
from .ops.row import ROWS
from .to_graph import to_graph
from .visitor import ExprMutator, mutated, walk

# Each of them makes the call of attributes if it can.
_STATIC: Mapping[str, Callable[..., Any]] = {
    "dyn.arange": op.arange, "dyn.broadcast_to": op.broadcast_to, "dyn.expand_dims": op.expand_dims, "dyn.full": op.full,
    "dyn.image.resize2d": op.image.resize2d, "dyn.nn.pad": op.nn.pad, "dyn.nn.upsampling": op.nn.upsampling,
    "dyn.nn.upsampling3d": op.nn.upsampling3d, "dyn.one_hot": op.one_hot, "dyn.ones": op.ones, "dyn.reshape": op.reshape,
    "dyn.sparse_to_dense": op.sparse_to_dense, "dyn.squeeze": op.squeeze, "dyn.strided_slice": op.strided_slice, "dyn.tile": op.tile,
    "dyn.topk": op.topk, "dyn.zeros": op.zeros,
}  # fmt: skip


def folded(call: Any) -> Any:
    """The value of a call of constants; None for others. Random numbers aren't computed twice, and so not here."""
    if call.op in ("shape_of", "ndarray_size"):
        return _of_shape(call)
    known = all(isinstance(one, graph.Constant) or (isinstance(one, graph.Tuple) and all(isinstance(f, graph.Constant) for f in one.fields))
                for one in call.args)  # fmt: skip
    if not call.args or not known or not isinstance(call, Call) or str(call.op).startswith("random."):
        return None
    found = Evaluator(to_graph(IRModule.from_expr(Function((), call))))("main")
    made = [Constant(owned(one).data) for one in (found if isinstance(found, tuple) else (found,))]
    return Tuple(made) if isinstance(found, tuple) else made[0]


def _of_shape(call: Any) -> Any:
    """The extents of a tensor, or their product, where they are known."""
    info = call.args[0].struct_info
    extents = [as_int(one) for one in info.extents or (None,)] if isinstance(info, TensorStructInfo) and info.extents != () else []
    if None in extents or not isinstance(info, TensorStructInfo):
        return None
    found = np.asarray(extents, "int64")
    return const(found if call.op == "shape_of" else found.prod(), call.attrs["dtype"])


def static(call: Any) -> Any:
    """A call by attributes in place of one by tensors, or of constants its value; None for others."""
    name = str(call.op)
    if name in _STATIC and any(isinstance(one, graph.Constant) for one in call.args):
        made = as_expr(_STATIC[name](**ROWS[name].bound(call)))
        if str(made.op) != name:
            found = folded(made)
            return made if found is None else found
    return folded(call)


def chosen(choice: Any) -> Any:
    """The branch that a constant condition chooses; the choice itself for others."""
    if not isinstance(choice, graph.If) or not isinstance(choice.cond, graph.Constant):
        return choice
    return choice.true_branch if bool(choice.cond.data.numpy()) else choice.false_branch


class Known(ExprMutator):
    """Puts what is known in its place: the branch that a constant condition chooses, constants for the variables that are bound to them."""

    def visit_if(self, ite: Any) -> Any:
        """The branch that is taken, where that is known."""
        return chosen(super().visit_if(ite))

    def visit_let(self, let: Let) -> Any:
        """The body alone where the variable is a constant."""
        value = None if isinstance(let.value, Function) else self.visit(let.value)
        if not isinstance(value, graph.Constant):
            return super().visit_let(let)
        self.memo_map[let.var] = value
        return self.visit(let.body)


class _Static(Known):
    def visit_call(self, call: Any) -> Any:
        """The call, or what stands in its place."""
        made = super().visit_call(call)
        found = static(made) if isinstance(made, Call) and isinstance(made.op, Op) else None
        return made if found is None else found


def with_known_shapes(func: Function) -> Function:
    """A function whose shapes are attributes where they are known; itself if none is a value."""
    if not any(isinstance(node, Call) and isinstance(node.op, Op) and node.op.startswith("dyn.") for node in walk(func)):
        return func
    with deep_recursion:
        made: Function = mutated(_Static(), func)
    return made
