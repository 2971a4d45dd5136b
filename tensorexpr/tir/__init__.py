"""The language: what all phases are written in. The modules, from the ground up:

    dtype, attrs, interning      data types, immutable mappings, one object per distinct expression
    expr, operators, arithmetic, bitwise, intrin     expressions, and all that builds them
    stmt, buffer, function       statements, memory, functions and modules
    rewriting, scopes            walks and rewrites; what a statement mentions and defines
    printer                      TVMScript text of everything
    structural                   equality and hash up to renaming
    verify, analysis             what must always hold; questions about functions
    stmt_functor                 visitors for user passes, by their customary names
    serialize                    expressions as strict JSON
    interpreter                  the reference semantics of every phase

`tir.transform`, the passes, lives with the lowering phases and is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import analysis, interpreter, printer, serialize, stmt_functor, structural, verify
from .analysis import undefined_vars
from .arithmetic import (
    add,
    all,
    any,
    ceildiv,
    const,
    convert,
    div,
    floordiv,
    floormod,
    indexdiv,
    indexmod,
    multiply,
    subtract,
    truncdiv,
    truncmod,
)
from .arithmetic import maximum as max
from .arithmetic import minimum as min
from .bitwise import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right
from .buffer import Buffer, BufferRegion, decl_buffer
from .expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    CommReducer,
    Div,
    ExprOp,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PointerType,
    PrimExpr,
    PrimType,
    ProducerLoad,
    Ramp,
    Range,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from .function import GlobalVar, IRModule, PrimFunc
from .intrin import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    call_extern,
    call_intrin,
    call_pure_extern,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    fma,
    fmod,
    hypot,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    likely,
    log,
    log1p,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    nextafter,
    popcount,
    pow,
    power,
    reinterpret,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from .stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from .stmt_functor import stmt_list, stmt_seq
from .structural import structural_equal, structural_hash

if TYPE_CHECKING:
    from ..lower import transform

# Names that users expect here and that live in a higher row: loaded on first use, so that nothing here depends on them.
_HIGHER = {"transform": "tensorexpr.lower.transform"}

__all__ = [
    "EQ", "GE", "GT", "LE", "LT", "NE", "Add", "Allocate", "And", "AssertStmt", "AttrStmt", "BinaryExpr", "Broadcast", "Buffer",
    "BufferLoad", "BufferRealize", "BufferRegion", "BufferStore", "Call", "Cast", "CmpExpr", "CommReducer", "DeclBuffer", "Div",
    "Evaluate", "ExprOp", "FloatImm", "FloorDiv", "FloorMod", "For", "ForKind", "GlobalVar", "IRModule", "IfThenElse", "IntImm",
    "IterVar", "Let", "LetStmt", "LogicalExpr", "Max", "Min", "Mod", "Mul", "Not", "Or", "PointerType", "PrimExpr", "PrimFunc",
    "PrimType", "ProducerLoad", "Ramp", "Range", "Reduce", "Select", "SeqStmt", "Shuffle", "SizeVar", "Stmt", "StringImm", "Sub", "Var",
    "While", "abs", "acos", "acosh", "add", "all", "analysis", "any", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "call_extern", "call_intrin", "call_pure_extern", "ceil", "ceildiv", "clz", "const",
    "convert", "copysign", "cos", "cosh", "decl_buffer", "div", "erf", "exp", "exp2", "exp10", "floor", "floordiv", "floormod", "fma",
    "fmod", "hypot", "if_then_else", "indexdiv", "indexmod", "infinity", "interpreter", "isfinite", "isinf", "isnan", "likely", "log",
    "log1p", "log2", "log10", "max", "max_value", "min", "min_value", "multiply", "nearbyint", "nextafter", "popcount", "pow", "power",
    "printer", "reinterpret", "round", "rsqrt", "serialize", "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt",
    "stmt_functor", "stmt_list", "stmt_seq", "structural", "structural_equal", "structural_hash", "subtract", "tan", "tanh",
    "transform", "trunc", "truncdiv", "truncmod", "undefined_vars", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HIGHER:
        raise AttributeError(f"module 'tensorexpr.tir' has no attribute {name!r}")
    module = importlib.import_module(_HIGHER[name])
    globals()[name] = module
    return module
