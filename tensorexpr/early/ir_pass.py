"""Passes and questions as functions of statements, as release 0.6 had them. What they take may be a lowered module as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..arith import Analyzer
from ..ir import structural_equal
from ..tir import transform
from ..tir.analysis import undefined_vars, verify_gpu_code
from ..tir.expr import PrimExpr
from ..tir.function import IRModule, PrimFunc
from ..tir.rewriting import Node
from ..tir.stmt_functor import ir_transform, post_order_visit, substitute
from .build_config import build_config

# The passes of `tir.transform` that take a statement here and give one; those with options take them as arguments.
_PASSES = "HoistIfThenElse InjectVirtualThread RemoveNoOp RewriteUnsafeSelect SkipAssert StorageRewrite VectorizeLoop"
_OPTIONS = {
    "InjectDoubleBuffer": ("double_buffer_split_loop",),
    "LoopPartition": ("partition_const_loop",),
    "UnrollLoop": ("auto_unroll_max_step", "auto_unroll_max_depth", "auto_unroll_max_extent", "unroll_explicit"),
}
Subject = Node | PrimFunc | IRModule


def _changed(subject: Any, change: Callable[[Any], Any]) -> Any:
    """A node changed, or the bodies of a function or of a module's functions."""
    if isinstance(subject, IRModule):
        return subject.map_functions(lambda func: func.with_body(change(func.body)))
    return subject.with_body(change(subject.body)) if isinstance(subject, PrimFunc) else change(subject)


def PostOrderVisit(stmt: Subject, fvisit: Callable[[Node], Any]) -> None:
    """`tir.stmt_functor.post_order_visit`: call `fvisit` on every node, children before parents."""

    def visited(node: Node) -> Node:
        post_order_visit(node, fvisit)
        return node

    _changed(stmt, visited)


def IRTransform(
    stmt: Subject,
    preorder: Callable[[Node], Node | None] | None,
    postorder: Callable[[Node], Node | None] | None,
    only_enable: Iterable[str] | None = None,
) -> Any:
    """`tir.stmt_functor.ir_transform`: rewrite the nodes of some classes."""
    return _changed(stmt, lambda body: ir_transform(body, preorder, postorder, only_enable))


def Substitute(stmt: Subject, value_map: Mapping[Any, Any]) -> Any:
    """`tir.stmt_functor.substitute`: replace variables."""
    return _changed(stmt, lambda body: substitute(body, value_map))


def Equal(lhs: Any, rhs: Any) -> bool:
    """Whether two nodes are the same but for the names of what they define."""
    return structural_equal(lhs, rhs)


def Simplify(stmt: Subject) -> Any:
    """An expression or the expressions of a statement, simplified."""
    return _changed(stmt, lambda node: Analyzer().simplify(node) if isinstance(node, PrimExpr) else _run("Simplify", node))


CanonicalSimplify = Simplify


def VerifyGPUCode(stmt: Subject, constraints: Mapping[str, int]) -> bool:
    """`tir.analysis.verify_gpu_code`: whether kernels keep within limits of a device."""
    if isinstance(stmt, IRModule):
        return all(VerifyGPUCode(func, constraints) for _, func in stmt.functions_items())
    return verify_gpu_code(_function(stmt), constraints)


def _function(stmt: Any) -> PrimFunc:
    """A statement as a function, of whose arguments it takes its free variables."""
    return stmt if isinstance(stmt, PrimFunc) else PrimFunc(tuple(undefined_vars(stmt)), stmt)


def _run(name: str, stmt: Any, *options: Any) -> Any:
    """A pass on a statement, whose free variables are those of a function for the time of the pass."""
    with build_config(**dict(zip(_OPTIONS.get(name, ()), options, strict=False))):
        mod = IRModule({"main": _function(stmt)})
        return getattr(transform, name)()(mod)["main"].body


def __getattr__(name: str) -> Any:
    if name in _PASSES.split() or name in _OPTIONS:
        return lambda stmt, *options: _changed(stmt, lambda body: _run(name, body, *options))
    known = ", ".join(["Simplify", "Substitute", "IRTransform", "VerifyGPUCode", *_PASSES.split(), *_OPTIONS])
    raise AttributeError(f"ir_pass has no {name!r}; it has {known}. Passes of later releases are in tir.transform")
