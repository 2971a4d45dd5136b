"""Graphs: functions of calls of operators, tensor functions and registered functions; passes on them; what runs them.

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 784), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.nn.softmax(x))
        bb.emit_func_output(y)
    ex = relax.build(bb.get(), "llvm")
    relax.VirtualMachine(ex, tvm.cpu())["main"](tvm.nd.array(...))

struct_info, expr   what is known of values; expressions
ops                 a row for each operator: its rule, its meaning, its tensor computation; `op` has them as functions
block_builder       functions by calls; `script` reads and `printer` writes them
visitor             walks and rewrites
evaluator           what a graph means, on NumPy's arrays
transform           passes
build, runtime      executables and the virtual machine
tuning              tune_network: a network's kernels searched within seconds
"""

from ..later import later, stand_for
from ..tir.function import GlobalVar
from ..tir.op_registry import Op as Op
from . import analysis, dpl, expr, expr_functor, op, pipeline, printer, struct_info, transform, utils, vm
from .binding_rewrite import DataflowBlockRewrite
from .block_builder import BlockBuilder
from .build import build
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    convert_to_expr,
    extern,
    get_shape_of,
)  # fmt: skip
from .expr_functor import ExprFunctor, PyExprMutator, PyExprVisitor
from .ops.calls import call_dps_packed, call_pure_packed, call_tir, call_tir_inplace, call_tir_with_grad
from .runtime.executable import Executable
from .runtime.machine import VirtualMachine, VMInstrumentReturnKind
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from .transform.pipeline import get_pipeline, register_pipeline
from .types import DynTensorType, FuncType, ObjectType, PackedFuncType, ShapeType, TupleType

stand_for(__name__, "vm_build=.vm")
vm_build = vm  # where releases before 0.20 have `build`
# What few programs need.
__getattr__, __dir__ = later(
    __name__, {".exec_builder": "ExecBuilder", ".tuning": "NetworkTuning tune_network"}, "frontend testing training"
)

__all__ = [
    "Binding", "BindingBlock", "BlockBuilder", "Call", "Constant", "DataTypeImm", "DataflowBlock", "DataflowBlockRewrite", "DataflowVar",
    "DynTensorType", "Executable", "Expr", "ExprFunctor", "ExternFunc", "FuncStructInfo", "FuncType", "Function", "GlobalVar", "If",
    "MatchCast", "ObjectStructInfo", "ObjectType", "PackedFuncType", "PrimStructInfo", "PrimValue", "PyExprMutator", "PyExprVisitor",
    "SeqExpr", "ShapeExpr", "ShapeStructInfo", "ShapeType", "StringImm", "StructInfo", "TensorStructInfo", "Tuple", "TupleGetItem",
    "TupleStructInfo", "TupleType", "VMInstrumentReturnKind", "Var", "VarBinding", "VirtualMachine", "analysis", "build", "call_dps_packed",
    "call_pure_packed", "call_tir", "call_tir_inplace", "call_tir_with_grad", "const", "convert_to_expr", "dpl", "expr", "expr_functor",
    "extern", "get_pipeline", "get_shape_of", "op", "pipeline", "printer", "register_pipeline", "struct_info", "transform", "utils", "vm",
    "vm_build",
]  # fmt: skip
