"""Expressions over indices of another width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..tir.arithmetic import binary, cast, compare
from ..tir.dtype import parse_dtype
from ..tir.expr import BinaryExpr, BufferLoad, Call, Cast, CmpExpr, PrimExpr, ProducerLoad, Select, Var
from ..tir.rewriting import children, map_children


def retyped(expr: PrimExpr, variables: Mapping[Var, PrimExpr], dtype: str) -> PrimExpr:
    """`expr` with variables replaced by ones of another integer dtype, and its indices in `dtype`; its own dtype stays."""
    return cast(_Retyping(variables, dtype).expr(expr), expr.dtype)


class _Retyping:
    """One walk, children first; what a replaced variable reaches through arithmetic changes its dtype too."""

    def __init__(self, variables: Mapping[Var, PrimExpr], dtype: str) -> None:
        self._variables = variables
        self._dtype = dtype
        self._done: dict[PrimExpr, PrimExpr] = {}

    def expr(self, root: PrimExpr) -> PrimExpr:
        """The expression, perhaps of another dtype."""
        stack = [root]
        while stack:
            node = stack[-1]
            waiting = [c for c in children(node) if isinstance(c, PrimExpr) and c not in self._done]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if node not in self._done:
                self._done[node] = self._node(node)
        return self._done[root]

    def _node(self, node: PrimExpr) -> PrimExpr:
        done = self._done
        match node:
            case Var():
                return self._variables.get(node, node)
            case BinaryExpr(a, b) if done[a] is not a or done[b] is not b:
                return binary(type(node), done[a], done[b])
            case CmpExpr(a, b) if done[a] is not a or done[b] is not b:
                return compare(type(node), done[a], done[b])
            case Select(condition, yes, no):
                # perhaps only one of the arms has a replaced variable in it
                wide = self._dtype if self._dtype in (done[yes].dtype, done[no].dtype) else node.dtype
                return Select(done[condition], cast(done[yes], wide), cast(done[no], wide))
            case Cast(value=value) if done[value] is not value:
                return cast(done[value], node.dtype)
            case Call(op="tir.if_then_else", args=(condition, yes, no)):
                wide = self._dtype if self._dtype in (done[yes].dtype, done[no].dtype) else node.dtype
                return replace(node, dtype=wide, args=(done[condition], cast(done[yes], wide), cast(done[no], wide)))
            case BufferLoad() | ProducerLoad():
                return replace(node, indices=tuple(_widened(done[index], self._dtype) for index in node.indices))
        # other nodes keep the dtypes of their operands: an intrinsic of int32 isn't one of int64
        return map_children(node, lambda child: cast(done[child], child.dtype) if isinstance(child, PrimExpr) else child)


def _widened(index: PrimExpr, dtype: str) -> PrimExpr:
    """An index in another integer dtype, computed in it as far as it is arithmetic: what floats are rounded to may then be wide, too."""
    if index.dtype == dtype:
        return index
    match index:
        case BinaryExpr(a, b):
            return binary(type(index), _widened(a, dtype), _widened(b, dtype))
        case Cast(value=value) if parse_dtype(value.dtype).is_float:
            return cast(value, dtype)
    return cast(index, dtype)
