"""The language: what all phases are written in. The modules, from the ground up:

dtype, attrs, node, interning      data types, immutable mappings, what all nodes share, one object per distinct expression
object_path                 paths from a program to its parts
op_registry                  names of operations, and what programs register about them
expr, operators, arithmetic, bitwise, intrin     expressions, and all that builds them
stmt, block, buffer, function     statements, blocks, memory, functions and modules
ir_builder                   loop nests written by hand, statement by statement
rewriting, scopes            walks and rewrites; what a statement mentions and defines
thread, storage_scope, device_intrin     tags of threads, which loops are bound to; kinds of memory; calls of devices
builtin                      fixed-point products, halves of vectors, atomic additions, assumptions
foreign                      calls of registered Python functions and of the math library
printer                      TVMScript text of everything
structural, structural_difference     equality and hash up to renaming; where programs differ
specialize                   functions for known sizes
tensor_intrin                what a few instructions compute, and the statements that do it
verify, block_rules, analysis     what must always hold, also of blocks; questions about functions
stmt_functor                 visitors for user passes, by their customary names
pointers, llvm_intrin        calls about machines: pointers into buffers, LLVM's own intrinsics
serialize                    expressions as strict JSON
interpreter                  the reference semantics of every phase
transform, schedule          passes, and schedules of functions: in higher rows, loaded when they are first asked for
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import analysis, printer, serialize, specialize, stmt_functor, structural, verify
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
from .block import Block, BlockRealize, MatchBufferRegion
from .buffer import Buffer, BufferRegion, decl_buffer
from .builtin import (
    assume,
    atomic_add,
    isnullptr,
    large_uint_imm,
    lookup_param,
    q_multiply_shift,
    q_multiply_shift_per_axis,
    ret,
    undef,
    vectorcombine,
    vectorhigh,
    vectorlow,
)
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
from .foreign import call_packed, trace
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
    ldexp,
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
from .llvm_intrin import call_llvm_intrin, call_llvm_pure_intrin
from .pointers import address_of, tvm_access_ptr, type_annotation
from .stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferBind,
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
from .tensor_intrin import TensorIntrin

if TYPE_CHECKING:
    from ..arith import IndexMap
    from ..lower import transform
    from . import interpreter, ir_builder

# Names that users expect here and that live in a higher row: loaded on first use, so that nothing here depends on them.
_HIGHER = {
    "transform": "tensorexpr.tir.transform",
    "IndexMap": "tensorexpr.arith.index_map",
    "Schedule": "tensorexpr.lower.tensor_schedules",
    "ScheduleError": "tensorexpr.errors",
    "ScheduleState": "tensorexpr.schedule.blocks.state",
    "StmtSRef": "tensorexpr.schedule.blocks.block_scope",
    "BlockScope": "tensorexpr.schedule.blocks.block_scope",
    "as_composite_schedule": "tensorexpr.meta_schedule.proposal",
}
# Modules that few programs need, and import would pay for.
_LAZY = {name: f"tensorexpr.tir.{name}" for name in ("interpreter", "ir_builder", "schedule")}

__all__ = [
    "EQ", "GE", "GT", "LE", "LT", "NE", "Add", "Allocate", "And", "AssertStmt", "AttrStmt", "BinaryExpr", "Block", "BlockRealize",
    "Broadcast", "Buffer", "BufferBind", "BufferLoad", "BufferRealize", "BufferRegion", "BufferStore", "Call", "Cast", "CmpExpr",
    "CommReducer", "DeclBuffer", "Div", "Evaluate", "ExprOp", "FloatImm", "FloorDiv", "FloorMod", "For", "ForKind", "GlobalVar",
    "IRModule", "IfThenElse", "IndexMap", "IntImm", "IterVar", "Let", "LetStmt", "LogicalExpr", "MatchBufferRegion", "Max", "Min",
    "Mod", "Mul", "Not", "Or", "PointerType", "PrimExpr", "PrimFunc", "PrimType", "ProducerLoad", "Ramp", "Range", "Reduce",
    "Select", "SeqStmt", "Shuffle", "SizeVar", "Stmt", "StringImm", "Sub", "TensorIntrin", "Var", "While", "abs", "acos", "acosh", "add",
    "address_of", "all", "analysis", "any", "asin", "asinh", "assume", "atan", "atan2", "atanh", "atomic_add", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "call_extern", "call_intrin", "call_llvm_intrin", "call_llvm_pure_intrin",
    "call_packed", "call_pure_extern", "ceil", "ceildiv", "clz", "const", "convert", "copysign", "cos", "cosh", "decl_buffer",
    "div", "erf", "exp", "exp2", "exp10", "floor", "floordiv", "floormod", "fma", "fmod", "hypot", "if_then_else", "indexdiv",
    "indexmod", "infinity", "interpreter", "ir_builder", "isfinite", "isinf", "isnan", "isnullptr", "large_uint_imm", "ldexp",
    "likely", "log", "log1p", "log2", "log10", "lookup_param", "max", "max_value", "min", "min_value", "multiply", "nearbyint",
    "nextafter", "popcount", "pow", "power", "printer", "q_multiply_shift", "q_multiply_shift_per_axis", "reinterpret", "ret",
    "round", "rsqrt", "serialize", "shift_left", "shift_right", "sigmoid", "sin", "sinh", "specialize", "sqrt", "stmt_functor",
    "stmt_list", "stmt_seq", "structural", "structural_equal", "structural_hash", "subtract", "tan", "tanh", "trace", "transform",
    "trunc", "truncdiv", "truncmod", "tvm_access_ptr", "type_annotation", "undef", "undefined_vars", "vectorcombine", "vectorhigh",
    "vectorlow", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    place = _HIGHER.get(name) or _LAZY.get(name)
    if place is None:
        raise AttributeError(f"module 'tensorexpr.tir' has no attribute {name!r}")
    module = importlib.import_module(place)
    found = globals()[name] = module if name in _LAZY else getattr(module, name, module)
    return found
