"""The code generator "ccompiler": what a network is cut into becomes functions of C, which the system's C compiler makes code of."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError
from ..relax import transform as on_graphs
from ..relax.kernel_schedules import kernel_of
from ..relax.struct_info import TensorStructInfo
from ..relax.tensor_function import function_of_tensors
from ..relax.transform.fuse_tir import composed
from ..runtime.build import build
from ..runtime.module import Module
from ..runtime.registry import register_func
from ..target import Target
from ..tir.arithmetic import as_int
from ..tir.attrs import IMPORT_C
from ..tir.expr import StringImm
from ..tir.function import IRModule
from ..tir.stmt import AttrStmt
from .expr import Function
from .to_graph import to_graph

CCOMPILER = "ccompiler"


def in_c(func: Function) -> Module:
    """A function as one of C, under its "global_symbol".

    The current target may be one of the kind "ccompiler", whose option "header" is text for the head of the file.

    Args:
        func: of tensors whose sizes are known; constants but numbers are its parameters.

    Raises:
        DeclarationError: for values that are no tensors, and operators without a tensor computation.
        CodegenError: for what has no C.
    """
    symbol = str(func.attrs["global_symbol"])
    graph = on_graphs.LegalizeOps()(on_graphs.Normalize()(to_graph(IRModule.from_expr(Function(func.params, func.body)))))
    main: Any = graph["main"]
    results = getattr(main.ret_struct_info, "fields", (main.ret_struct_info,))
    for info in (*(param.struct_info for param in main.params), *results):
        if not isinstance(info, TensorStructInfo) or any(as_int(one) is None for one in info.extents or (None,)):
            raise DeclarationError(f"{CCOMPILER}: {symbol} takes and returns tensors of known shapes, not {info}")
    inputs, outputs = composed(main, graph)
    target = Target("c")
    made = kernel_of(function_of_tensors(inputs, outputs), symbol, target).func
    now = Target.current()
    if now is not None and now.kind.name == CCOMPILER and "header" in now.attrs:
        made = made.with_body(AttrStmt(None, IMPORT_C, StringImm(str(now.attrs["header"])), made.body))
    return build(IRModule({symbol: made}), target=target)


register_func(f"relay.ext.{CCOMPILER}", in_c, override=True)

__all__ = ["CCOMPILER", "in_c"]
