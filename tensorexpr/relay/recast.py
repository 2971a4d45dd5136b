"""recast: some operators in another dtype, with casts around them.

nn.conv2d(x, w)  ->  cast(nn.conv2d(cast(x, "int8"), cast(w, "int8"), out_dtype="int32"), "float32")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import TypeMismatchError
from ..relax import expr as graph
from ..tir.op_registry import Op
from .expr import Call, Tuple
from .ops.elementwise import cast
from .visitor import ExprMutator, walk


def recast(expr: Any, dtype: str, out_dtype: str, ops: Sequence[str] | None = None, skip_layers: Sequence[int] | None = None) -> Any:
    """A function whose calls of some operators read and write other dtypes.

    Args:
        expr: it, or an expression.
        dtype: of what they read.
        out_dtype: of what they write, of operators that ask for it; it is cast back to what it was.
        ops: which operators; ["nn.conv2d"] if None.
        skip_layers: the numbers of calls that stay, from 0 in the order of computation; negative ones count from the last.

    Raises:
        TypeMismatchError: for operands that are no tensors.
    """
    chosen = set(ops or ("nn.conv2d",))
    layers = [node for node in walk(expr) if isinstance(node, graph.Call) and isinstance(node.op, Op) and str(node.op) in chosen]
    kept = {id(layers[n]) for n in skip_layers or () if -len(layers) <= n < len(layers)}
    changed = {id(node) for node in layers} - kept

    class _Recast(ExprMutator):
        def _cast(self, arg: Any) -> Any:
            if isinstance(arg, graph.Tuple):
                return Tuple([self._cast(one) for one in arg.fields])
            return cast(arg, dtype)

        def visit_call(self, call: Any) -> Any:
            made = super().visit_call(call)
            if id(call) not in changed:
                return made
            was = call.checked_type
            if not hasattr(was, "dtype"):
                raise TypeMismatchError(f"recast: {call.op} returns {was}; what returns several tensors can't be cast")
            attrs = {**made.attrs, "out_dtype": out_dtype} if "out_dtype" in made.attrs else made.attrs
            return cast(Call(made.op, [self._cast(one) for one in made.args], attrs), was.dtype)

    return _Recast().visit(expr)


__all__ = ["recast"]
