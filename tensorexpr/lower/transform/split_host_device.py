"""Regions of another target as functions of their own, which their host calls.

def main(A, n):                          def main_kernel(A_data, n): B = decl_buffer(.., A_data); ..
    attr target: A[i] = n        ->      def main(A, n): main_kernel(A.data, n)
"""

from __future__ import annotations

from ...target import Target
from ...tir.analysis import undefined_vars
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer
from ...tir.expr import EQ, BufferLoad, Call, IntImm, PrimType, StringImm, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.rewriting import walk
from ...tir.scopes import buffer_vars
from ...tir.stmt import NOP, AssertStmt, AttrStmt, BufferStore, DeclBuffer, Evaluate, LetStmt, Stmt, seq
from ...tir.stmt_functor import renew_defs
from ..context import PassContext
from ..passes import ModulePass, Pass
from ..rebuild import map_stmt, walk_statements
from .decorators import unused

_REPORTING = ("llvm", "c", "hexagon", "ext_dev")  # kinds whose functions can give back an error


def SplitHostDevice() -> Pass:
    """The statements under an attribute "target" as private functions `<name>_kernel` for that target.

    A region for a CPU gives back an error code, which its caller asserts to be 0.
    """

    def split(mod: IRModule, ctx: PassContext) -> IRModule:
        names = {var.name_hint for var, _ in mod.functions_items()}
        kernels: dict[str | GlobalVar, PrimFunc] = {}
        rest: dict[str | GlobalVar, PrimFunc] = {}
        for var, func in mod.functions_items():
            splitter = _Splitter(var.name_hint, names, kernels)
            rest[var] = func.with_body(splitter.stmt(func.body)) if isinstance(func, PrimFunc) else func
        return IRModule({**kernels, **rest}, mod.attrs) if kernels else mod

    return ModulePass("tir.SplitHostDevice", unused, module_func=split, by_user=False)


class _Splitter:
    def __init__(self, name: str, names: set[str], kernels: dict[str | GlobalVar, PrimFunc]) -> None:
        self._name, self._names, self._kernels = name, names, kernels

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with calls in place of regions."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "target" and isinstance(stmt.node, Target):
            return self._call(stmt.body, stmt.node)
        return map_stmt(stmt, self.stmt)

    def _call(self, body: Stmt, target: Target) -> Stmt:
        params, buffers = kernel_parameters(body)
        for buffer in buffers:
            body = DeclBuffer(buffer, body)
        reports = target.kind.name in _REPORTING
        if reports:
            body = seq(body, Evaluate(Call("int32", "tir.ret", (IntImm("int32", 0),))))
        name = self._fresh(f"{self._name}_kernel")
        attrs = FrozenMap({"target": target, "tir.noalias": True, "tir.is_global_func": True})
        result = PrimType("int32") if reports else None
        self._kernels[name] = renew_defs(PrimFunc(tuple(params), body, result, attrs=attrs))
        made = Call("int32" if reports else "void", GlobalVar(name), tuple(params))  # type: ignore[arg-type]
        if not reports:
            return Evaluate(made)
        code = Var("kernel_error_code", "int32")
        return LetStmt(code, made, AssertStmt(EQ(code, IntImm("int32", 0)), StringImm("Error executing compute kernel"), NOP))

    def _fresh(self, name: str) -> str:
        number, found = 0, name
        while found in self._names:
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found


def kernel_parameters(body: Stmt) -> tuple[list[Var], list[Buffer]]:
    """What a region takes from outside, pointers first and each kind by name, and the buffers to declare over the pointers."""
    outer = set(undefined_vars(body))
    used: dict[Buffer, None] = {}
    declared = {s.buffer for s in walk_statements(body) if isinstance(s, DeclBuffer)}
    for node in walk(body):
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data in outer and node.buffer not in declared:
            used.setdefault(node.buffer)
    for buffer in used:
        outer.update(var for var in buffer_vars(buffer))
    params = sorted(outer, key=lambda var: (var.dtype != "handle", var.name))
    return params, sorted(used, key=lambda buffer: buffer.name)
