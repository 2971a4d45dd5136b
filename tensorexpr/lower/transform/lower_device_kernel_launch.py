"""Calls of functions for other targets, by the means that cross from one to the other.

A call between devices launches a kernel: it goes through the runtime by name and carries the numbers of threads. A call
between code generators of one device is one of an extern symbol. Calls within a target stay.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...dataclass import dataclass
from ...errors import LoweringError
from ...target import Target
from ...tir.dtype import parse_dtype
from ...tir.expr import Call, IntImm, IterVar, PrimExpr, StringImm, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, substitute
from ...tir.stmt import Allocate, AttrStmt
from ..context import PassContext
from ..passes import ModulePass, Pass
from ..rebuild import pointer_scope, walk_statements
from .decorators import unused

_CPU = ("llvm", "c", "hexagon")
_SHARED = "tir.use_dyn_shared_memory"
_DEVICE_KERNEL_LAUNCH = 2


def LowerDeviceKernelLaunch() -> Pass:
    """Calls between targets as launches of kernels or as calls of extern symbols; what they call is made visible.

    Raises:
        LoweringError: when it runs, for a number of threads that the caller can't know.
    """

    def lower(mod: IRModule, ctx: PassContext) -> IRModule:
        functions = {var: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)}
        called: dict[GlobalVar, str] = {}
        bodies = {var: _Caller(var, functions, called).lowered() for var in functions}
        return IRModule({var: _callee(var, func, called.get(var, "")) for var, func in bodies.items()}, mod.attrs)

    return ModulePass("tir.LowerDeviceKernelLaunch", unused, module_func=lower, by_user=False)


def _device(target: Target) -> str:
    return "cpu" if target.kind.name in _CPU else target.kind.name


def _symbol(var: GlobalVar, func: PrimFunc) -> str:
    return str(func.attrs.get("global_symbol") or var.name_hint)


@dataclass(frozen=True)
class Launch:
    """What a kernel's launch says besides its arguments: names, and values in terms of the kernel's parameters."""

    names: tuple[str, ...]
    values: tuple[PrimExpr, ...]


def launch_of(func: PrimFunc) -> Launch:
    """The threads of a kernel, in the order in which they are bound, and its dynamic shared memory in bytes."""
    found: dict[str, PrimExpr] = {}
    shared: PrimExpr | None = None
    for stmt in walk_statements(func.body):
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
            found.setdefault(stmt.node.thread_tag, stmt.value)
        elif isinstance(stmt, Allocate) and pointer_scope(stmt.buffer_var) == "shared.dyn":
            shared = _bytes(stmt)
    if shared is not None:
        found[_SHARED] = shared
    return Launch(tuple(found), tuple(found.values()))


def _bytes(stmt: Allocate) -> PrimExpr:
    parsed = parse_dtype(stmt.dtype)
    total: PrimExpr = IntImm("int32", parsed.itemsize * parsed.lanes)
    for extent in stmt.extents:
        total = total * extent
    return total


class _Caller:
    """One function whose calls are lowered."""

    def __init__(self, var: GlobalVar, functions: Mapping[GlobalVar, PrimFunc], called: dict[GlobalVar, str]) -> None:
        self._func, self._functions, self._called = functions[var], functions, called

    def lowered(self) -> PrimFunc:
        """The function with its calls lowered."""
        target = self._func.attrs.get("target")
        if not isinstance(target, Target):
            return self._func

        def rule(node: Node) -> Node | None:
            return self._call(node, target) if isinstance(node, Call) and isinstance(node.op, GlobalVar) else None

        return self._func.with_body(post_order_rewrite(self._func.body, rule))

    def _call(self, call: Call, target: Target) -> Node | None:
        var: GlobalVar = call.op  # type: ignore[assignment]
        callee = self._functions.get(var)
        other = None if callee is None else callee.attrs.get("target")
        if callee is None or not isinstance(other, Target) or other.kind.name == target.kind.name:
            return None
        symbol = StringImm(_symbol(var, callee))
        if _device(other) == _device(target):
            self._called.setdefault(var, "extern")
            return Call(call.dtype, "tir.call_extern", (symbol, *call.args))
        self._called[var] = "kernel"
        launch = launch_of(callee)
        mapping: dict[Var, PrimExpr] = dict(zip(callee.params, call.args, strict=True))
        values = tuple(substitute(value, mapping) for value in launch.values)
        dtype = "int32" if call.dtype == "void" else call.dtype
        return Call(dtype, "tir.tvm_call_packed", (symbol, *call.args, *values))


def _callee(var: GlobalVar, func: PrimFunc, how: str) -> PrimFunc:
    """A function that others call: visible by its name, and with what its launch says."""
    if not how:
        return func
    attrs = {**func.attrs, "global_symbol": _symbol(var, func), "tir.is_global_func": True}
    if how == "kernel":
        if func.buffer_map:
            raise LoweringError(f"kernel {var.name_hint} takes buffers; kernels take pointers (tir.transform.SplitHostDevice makes them)")
        attrs |= {"calling_conv": _DEVICE_KERNEL_LAUNCH, "tir.kernel_launch_params": launch_of(func).names}
    return func.with_attrs(attrs)
