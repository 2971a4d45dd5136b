"""What the fragments of matrix units are, as attributes of their memory: for code generators, which declare them by it.

f = T.allocate([256], "float16", "wmma.matrix_a")           f = T.allocate([256], "float16", "wmma.matrix_a")
T.tvm_load_matrix_sync(f, 16, 16, 16, 0, .., "row_major")   ->  T.attr(f, "fragment_shape", "16, 16, 16")
                                                                T.attr(f, "fragment_layout", "row_major")
                                                                T.tvm_load_matrix_sync(f, 16, 16, 16, 0, .., "row_major")
"""

from __future__ import annotations

from collections.abc import Iterable

from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...tir.arithmetic import as_int
from ...tir.expr import Call, PrimExpr, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import Allocate, AttrStmt, Stmt
from ..passes import Pass
from ..rebuild import map_stmt, own_expressions, pointer_scope, walk_statements

SHAPE, LAYOUT = "fragment_shape", "fragment_layout"
_MATRICES = ("wmma.matrix_a", "wmma.matrix_b")
_LOAD = "tir.tvm_load_matrix_sync"
_NAMING = (_LOAD, "tir.tvm_store_matrix_sync", "tir.tvm_fill_fragment")  # f, m, n, k, ...
_PRODUCTS = ("tir.tvm_mma_sync", "tir.tvm_bmma_sync")  # four pairs of a fragment and its index


def InferFragment() -> Pass:
    """The shape of every fragment, and the layout of those that are loaded, as attributes of their allocations.

    Raises:
        LoweringError: when it runs, where calls disagree about a fragment, or a product takes fragments of different shapes.
    """

    def run(func: PrimFunc) -> PrimFunc:
        found = fragments(func.body)
        return func.with_body(_marked(func.body, found)) if found else func

    return Pass("tir.InferFragment", lambda func, ctx: run(func))


@dataclass(frozen=True)
class Fragment:
    """`m` by `n` elements, of products over `k`; `layout` is that of the memory that it is loaded from, if it is."""

    shape: tuple[int, int, int]
    layout: str | None = None


def fragments(body: Stmt) -> dict[Var, Fragment]:
    """The fragments that the calls in a body name."""
    calls = [node for stmt in walk_statements(body) for expr in own_expressions(stmt) for node in walk(expr) if isinstance(node, Call)]
    found: dict[Var, Fragment] = {}
    for call in calls:
        if call.op in _NAMING:
            var, named = _named(call)
            found[var] = _joined(var, found.get(var, named), named)
    for call in calls:
        if call.op in _PRODUCTS:
            _check_product(call.args[::2], found)
    return found


def _named(call: Call) -> tuple[Var, Fragment]:
    var, *sizes = call.args[:4]
    shape = [as_int(size) for size in sizes]
    if not isinstance(var, Var) or None in shape:
        raise LoweringError(f"InferFragment: a fragment is named by its pointer and three constants, not as in {call}")
    layout = call.args[-1] if call.op == _LOAD else None
    m, n, k = (size or 0 for size in shape)
    return var, Fragment((m, n, k), layout.value if isinstance(layout, StringImm) else None)


def _joined(var: Var, one: Fragment, other: Fragment) -> Fragment:
    if one.shape != other.shape:
        raise LoweringError(f"InferFragment: {var.name} is a fragment of {_text(one)} and of {_text(other)}; allocate one for each shape")
    # What an accumulator is loaded as says nothing of how it is stored.
    if pointer_scope(var) in _MATRICES and None not in (one.layout, other.layout) and one.layout != other.layout:
        raise LoweringError(f"InferFragment: {var.name} is loaded as {one.layout} and as {other.layout}; allocate one for each layout")
    return replace(one, layout=one.layout or other.layout)


def _check_product(operands: Iterable[PrimExpr], found: dict[Var, Fragment]) -> None:
    known = [(operand, found[operand]) for operand in operands if isinstance(operand, Var) and operand in found]
    for var, one in known[1:]:
        first, shape = known[0]
        if one.shape != shape.shape:
            raise LoweringError(
                f"InferFragment: a product takes {first} of {_text(shape)} and {var} of {_text(one)}; all its fragments have one shape"
            )


def _text(fragment: Fragment) -> str:
    return ", ".join(map(str, fragment.shape))


def _marked(stmt: Stmt, found: dict[Var, Fragment]) -> Stmt:
    result = map_stmt(stmt, lambda inner: _marked(inner, found))
    if not isinstance(result, Allocate) or result.buffer_var not in found:
        return result
    var, fragment = result.buffer_var, found[result.buffer_var]
    body = result.body
    if fragment.layout is not None and pointer_scope(var) in _MATRICES:
        body = AttrStmt(var, LAYOUT, StringImm(fragment.layout), body)
    return replace(result, body=AttrStmt(var, SHAPE, StringImm(_text(fragment)), body))
