"""The language: what all phases are written in. The modules, from the ground up:

dtype, attrs, node, interning      data types, immutable mappings, what all nodes share, one object per distinct expression
object_path                 paths from a program to its parts
op_registry                  names of operations, and what programs register about them
types, atoms, operations, reduce     types; variables and constants; operators; ranges, axes and reductions: `expr` has them all
expr, operators, conversion, arithmetic, bitwise, intrin   expressions, and all that builds them
stmt, block, buffer, function     statements, blocks, memory, functions and modules
data_layout, op, generic     layouts by the names of their axes; all builders in one place
ir_builder                   loop nests written by hand, statement by statement
rewriting, scopes            walks and rewrites; what a statement mentions and defines
thread, storage_scope, device_intrin     tags of threads, which loops are bound to; kinds of memory; calls of devices
builtin                      fixed-point products, halves of vectors, atomic additions, assumptions
foreign                      calls of registered Python functions and of the math library
constant_array, unknown, global_info     arrays in programs; extents that nobody knows yet; what modules say beside functions
printer                      TVMScript text of everything
structural, structural_digest     equality and hash up to renaming
structural_fields, structural_difference, structured     what both take a node to be made of; where programs differ; parts of higher rows
specialize, rename, returned     functions for known sizes, by other names, with a buffer for their result
reduction_laws               which combinations are associative and commutative, and what changes nothing
insist                       whether users insist on unsafe steps
tensor_intrin                what a few instructions compute, and the statements that do it
verify, block_rules, analysis     what must always hold, also of blocks; questions about functions
stmt_functor, functor        visitors for user passes, by their customary names; the same as classes
pointers, llvm_intrin        calls about machines: pointers into buffers, LLVM's own intrinsics
warp_units                   what the threads of a warp do together, as statements of each
serialize                    expressions as strict JSON
interpreter                  the reference semantics of every phase
transform, schedule, block_scope, block_dependence_info     passes, schedules of functions: in higher rows, loaded on first use
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING

from ..later import later
from . import analysis, device_intrin, specialize, stmt_functor, verify
from .analysis import undefined_vars
from .arithmetic import add, ceildiv, const, convert, div, floordiv, floormod, indexdiv, indexmod, multiply, subtract, truncdiv, truncmod
from .arithmetic import maximum as max
from .arithmetic import minimum as min
from .bitwise import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right
from .block import Block, BlockRealize, MatchBufferRegion
from .buffer import Buffer, BufferRegion, decl_buffer
from .builtin import (
    all,
    any,
    assume,
    atomic_add,
    get_active_lane_mask,
    get_vscale_expr,
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
    vscale,
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
    DataProducer,
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
from .function import GlobalVar, IRModule, PrimFunc, call_tir
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
from .op_registry import CallEffectKind
from .pointers import address_of, tvm_access_ptr, type_annotation
from .stmt import (
    Allocate,
    AllocateConst,
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
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
)
from .stmt_functor import stmt_list, stmt_seq

if TYPE_CHECKING:
    from ..arith import IndexMap
    from ..lower import transform
    from ..schedule.blocks.dependence_info import BlockDependenceInfo
    from . import data_layout, functor, generic, interpreter, ir_builder, op, printer, serialize, structural
    from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
    from .llvm_intrin import call_llvm_intrin, call_llvm_pure_intrin
    from .structural import structural_equal
    from .structural_digest import structural_hash
    from .tensor_intrin import TensorIntrin
    from .unknown import Any

# Names that live in a higher row, so that nothing here may depend on them, and those that few programs need.
_HOMES = {
    ".data_layout": "BijectiveLayout Layout bijective_layout layout",
    ".llvm_intrin": "call_llvm_intrin call_llvm_pure_intrin",
    ".structural": "structural_equal",
    ".structural_digest": "structural_hash",
    ".tensor_intrin": "TensorIntrin",
    ".unknown": "Any",
    ".expr": "Load=BufferLoad",  # as releases up to 0.9 call it
    ".stmt": "Store=BufferStore",
    "tensorexpr.errors": "ScheduleError",
    "tensorexpr.arith.index_map": "IndexMap",
    "tensorexpr.schedule.blocks.state": "ScheduleState",
    "tensorexpr.schedule.blocks.block_scope": "BlockScope StmtSRef",
    "tensorexpr.schedule.blocks.dependence_info": "BlockDependenceInfo",
    "tensorexpr.lower.tensor_schedules": "Schedule",
    "tensorexpr.meta_schedule.proposal": "as_composite_schedule",
}
_MODULES = """block_dependence_info block_scope data_layout functor generic interpreter ir_builder llvm_intrin op printer schedule serialize
structural tensor_intrin transform unknown"""
_defined_elsewhere, __dir__ = later(__name__, _HOMES, _MODULES)

# Calls of devices that have a shorter name here; all others of `device_intrin` are found by their own.
_DEVICE_CALLS = {name: f"tvm_{name}" for name in ("call_cpacked", "call_cpacked_lowered", "call_packed_lowered")}

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "Allocate",
    "AllocateConst",
    "And",
    "Any",
    "AssertStmt",
    "AttrStmt",
    "BijectiveLayout",
    "BinaryExpr",
    "Block",
    "BlockDependenceInfo",
    "BlockRealize",
    "Broadcast",
    "Buffer",
    "BufferBind",
    "BufferLoad",
    "BufferRealize",
    "BufferRegion",
    "BufferStore",
    "Call",
    "CallEffectKind",
    "Cast",
    "CmpExpr",
    "CommReducer",
    "DataProducer",
    "DeclBuffer",
    "Div",
    "Evaluate",
    "ExprOp",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "For",
    "ForKind",
    "GlobalVar",
    "IRModule",
    "IfThenElse",
    "IndexMap",
    "IntImm",
    "IterVar",
    "Layout",
    "Let",
    "LetStmt",
    "LogicalExpr",
    "MatchBufferRegion",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PointerType",
    "Prefetch",
    "PrimExpr",
    "PrimFunc",
    "PrimType",
    "ProducerLoad",
    "ProducerRealize",
    "ProducerStore",
    "Ramp",
    "Range",
    "Reduce",
    "Select",
    "SeqStmt",
    "Shuffle",
    "SizeVar",
    "Stmt",
    "StringImm",
    "Sub",
    "TensorIntrin",
    "Var",
    "While",
    "abs",
    "acos",
    "acosh",
    "add",
    "address_of",
    "all",
    "analysis",
    "any",
    "asin",
    "asinh",
    "assume",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "bijective_layout",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "call_tir",
    "ceil",
    "ceildiv",
    "clz",
    "const",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "data_layout",
    "decl_buffer",
    "div",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "functor",
    "generic",
    "get_active_lane_mask",
    "get_vscale_expr",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "interpreter",
    "ir_builder",
    "isfinite",
    "isinf",
    "isnan",
    "isnullptr",
    "large_uint_imm",
    "layout",
    "ldexp",
    "likely",
    "log",
    "log1p",
    "log2",
    "log10",
    "lookup_param",
    "max",
    "max_value",
    "min",
    "min_value",
    "multiply",
    "nearbyint",
    "nextafter",
    "op",
    "popcount",
    "pow",
    "power",
    "printer",
    "q_multiply_shift",
    "q_multiply_shift_per_axis",
    "reinterpret",
    "ret",
    "round",
    "rsqrt",
    "serialize",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sinh",
    "specialize",
    "sqrt",
    "stmt_functor",
    "stmt_list",
    "stmt_seq",
    "structural",
    "structural_equal",
    "structural_hash",
    "subtract",
    "tan",
    "tanh",
    "trace",
    "transform",
    "trunc",
    "truncdiv",
    "truncmod",
    "tvm_access_ptr",
    "type_annotation",
    "undef",
    "undefined_vars",
    "vectorcombine",
    "vectorhigh",
    "vectorlow",
    "verify",
    "vscale",
]  # fmt: skip


def __getattr__(name: str) -> typing.Any:
    if (call := _DEVICE_CALLS.get(name, name)) in device_intrin.DEVICE_INTRINSICS:
        return globals().setdefault(name, device_intrin.builder(call))
    return _defined_elsewhere(name)
