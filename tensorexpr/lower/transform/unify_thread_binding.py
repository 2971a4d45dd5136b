"""One variable for each thread axis of a kernel, bound around all of it.

for b in T.thread_binding(4, "blockIdx.x"):             for blockIdx_x in T.thread_binding(4, "blockIdx.x"):
    for i in T.thread_binding(8, "threadIdx.x"): f          for threadIdx_x in T.thread_binding(8, "threadIdx.x"):
    for j in T.thread_binding(8, "threadIdx.x"): g  ->          f; g
"""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, field, replace
from ...errors import LoweringError
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import variables
from ...tir.scopes import parts
from ...tir.stmt import AttrStmt, For, ForKind, Stmt
from ...tir.stmt_functor import Renaming
from ...tir.thread import VIRTUAL_TAGS
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements


def UnifyThreadBinding() -> Pass:
    """Loops bound to threads gathered at the top of their kernel, one for each tag; functions lowered from te stay.

    Raises:
        LoweringError: when it runs, where one tag is bound with different extents in one kernel.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if func.attrs.get("from_legacy_te_schedule"):
            return func
        return func.with_body(unified(func.body))

    return Pass("tir.UnifyThreadBinding", run)


def unified(body: Stmt, with_virtual: bool = True) -> Stmt:
    """The body of a function with the threads of each kernel gathered at its top; virtual ones only `with_virtual`."""
    return _Unifier(with_virtual).stmt(body)


@dataclass
class _Launch:
    """The threads of one kernel, by tag in the order in which they are met."""

    axes: dict[str, IterVar] = field(default_factory=dict)


class _Unifier:
    def __init__(self, with_virtual: bool) -> None:
        self._with_virtual = with_virtual
        self._launch: _Launch | None = None
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with the threads of each kernel around it."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread") and isinstance(stmt.node, IterVar):
            if self._gathers(stmt.node.thread_tag):
                return self._bound(stmt.node.var, stmt.node, stmt.value, stmt.body)
        elif isinstance(stmt, For) and stmt.thread_binding is not None and self._gathers(stmt.thread_binding.thread_tag):
            result = self._bound(stmt.loop_var, stmt.thread_binding, stmt.extent, stmt.body)
            return _annotated(result, stmt) if stmt.annotations else result
        return map_stmt(stmt, self.stmt)

    def _gathers(self, tag: str) -> bool:
        return self._with_virtual or tag not in VIRTUAL_TAGS

    def _bound(self, var: Var, origin: IterVar, extent: PrimExpr, body: Stmt) -> Stmt:
        outermost = self._launch is None
        launch = self._launch = self._launch or _Launch()
        axis = self._axis(launch, origin, var.dtype, extent)
        result = self.stmt(Renaming({var: axis.var}, folding=False).apply(body))
        if not outermost:
            return result
        self._launch = None
        _check_extents(launch, result)
        for one in reversed(launch.axes.values()):
            assert one.dom is not None
            binding = replace(one, dom=None, var=Var("", one.dtype))
            result = For(one.var, one.dom.min, one.dom.extent, ForKind.THREAD_BINDING, result, binding)
        return result

    def _axis(self, launch: _Launch, origin: IterVar, dtype: str, extent: PrimExpr) -> IterVar:
        tag = origin.thread_tag
        known = launch.axes.get(tag)
        if known is not None and known.dom is not None:
            if not self._analyzer.can_prove_equal(known.dom.extent, extent):
                raise LoweringError(f"{tag} is bound with extent {known.dom.extent} and with {extent}; a kernel has one number of threads")
            if known.var.dtype != dtype:
                raise LoweringError(f"{tag} is bound to variables of {known.var.dtype} and {dtype} in one kernel; use one dtype")
            return known
        low = IntImm(dtype, 0) if origin.dom is None else origin.dom.min
        var = Var(tag.replace(".", "_"), dtype)
        launch.axes[tag] = replace(origin, dom=Range.from_min_extent(low, extent), var=var, iter_type=IterVar.THREAD_INDEX, thread_tag=tag)
        return launch.axes[tag]


def _check_extents(launch: _Launch, body: Stmt) -> None:
    """Refuse numbers of threads that only the kernel itself knows."""
    used = {var: tag for tag, axis in launch.axes.items() if axis.dom is not None for var in variables(axis.dom.extent)}
    if used:
        inside = {axis.var for axis in launch.axes.values()} | {var for stmt in walk_statements(body) for var in parts(stmt).defines}
        for var, tag in used.items():
            if var in inside:
                raise LoweringError(
                    f"the extent of {tag} depends on {var.name}, which is known in its kernel only; all threads start at once: "
                    "bind a loop of the largest extent, with a condition inside"
                )


def _annotated(result: Stmt, loop: For) -> Stmt:
    """What a bound loop became, with its annotations: on the loop that it is or, where it is none, on one of one iteration around it."""
    if isinstance(result, For):
        return replace(result, annotations=loop.annotations)
    dtype = loop.loop_var.dtype
    return For(Var("var", dtype), IntImm(dtype, 0), IntImm(dtype, 1), ForKind.SERIAL, result, None, loop.annotations)
