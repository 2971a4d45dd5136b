"""Relay by its names: what makes, changes, builds and runs its programs. They are graphs of `relax`; there is no other compiler.

    x = relay.var("x", shape=(1, 16), dtype="float32")
    y = relay.nn.relu(relay.nn.dense(x, relay.const(weights)))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], y)), target="llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))

expr, ty            nodes and types
ops                 a row for each operator: its signature and what it means; `op`, `nn`, `qnn` have them as functions
to_graph            Relay's functions as functions of graphs; `from_graph` is the way back
visitor, analysis, transform, text
build_module        build, executors
frontend, testing   models of others; networks by name
"""

from __future__ import annotations

from ..later import later
from ..runtime.params import load_param_dict, save_param_dict
from ..tir.function import GlobalVar
from . import backend, build_module, expr, op, qnn, ty, visitor
from .adt import (
    Clause,
    Constructor,
    GlobalTypeVar,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeCall,
    TypeData,
    TypeKind,
    TypeVar,
)  # fmt: skip
from .build_module import bind_params_by_name, build, build_config, create_executor, optimize
from .expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RelayExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    bind,
    const,
    var,
)  # fmt: skip
from .op import *  # noqa: F403  every operator is a name of this package
from .op import annotation, image, nn, random, vision
from .ty import Any, FuncType, IncompleteType, ShapeVar, TensorType, TupleType, Type, scalar_type
from .visitor import ExprFunctor, ExprMutator, ExprVisitor

_LATER = {
    ".prelude": "Prelude", ".references": "RefCreate RefRead RefType RefWrite", ".type_names": "TypeRelation",
    "..ir.source": "SourceName Span", ".loops": "while_loop", "..tir.function": "Module=IRModule",
    ".graph_executor": "graph_executor=.", ".parser": "fromtext parse parse_expr", ".scope_builder": "ScopeBuilder",
    ".visitor": "expr_functor=.", ".type_functor": "TypeFunctor TypeMutator TypeVisitor type_functor=.",
    ".expr": "function=.",
}  # fmt: skip
_MODULES = (
    "analysis data_dep_optimization dataflow_pattern frontend loops parser prelude quantize scope_builder testing text transform viz vm"
)
__getattr__, __dir__ = later(__name__, _LATER, _MODULES)

__all__ = [
    "Any", "Call", "Clause", "Constant", "Constructor", "Expr", "ExprFunctor", "ExprMutator", "ExprVisitor", "FuncType", "Function",
    "GlobalTypeVar", "GlobalVar", "If", "IncompleteType", "Let", "Match", "PatternConstructor", "PatternTuple", "PatternVar",
    "PatternWildcard", "RelayExpr", "ShapeVar", "TensorType", "Tuple", "TupleGetItem", "TupleType", "TupleWrapper", "Type",
    "TypeCall", "TypeData", "TypeKind", "TypeVar", "Var", "annotation", "backend", "bind", "bind_params_by_name", "build",
    "build_config", "build_module", "const", "create_executor", "expr", "image", "load_param_dict", "nn", "op", "optimize", "qnn",
    "random", "save_param_dict", "scalar_type", "ty", "var", "vision", "visitor",
]  # fmt: skip
__all__ += op.__all__
