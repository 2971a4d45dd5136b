"""Operators that become certain tensor functions: FuseTransposeMatmul and FastMathTransform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import topi
from ...lower.passes import ModulePass
from ...tir.function import IRModule
from ..analysis import remove_all_unused
from ..block_builder import BlockBuilder
from ..expr import Call, Function
from ..ops.linear import matmul_of
from .identities import is_known
from .passes import each_function
from .rewriting import Rewriter
from .transposes import PERMUTE, order_of

Make = Callable[[Rewriter, BlockBuilder, Call], Any]


def _by_te(name: str, made_by: Mapping[str, Make]) -> ModulePass:
    """A pass that puts calls of tensor functions in place of operators of known shapes."""

    def run(func: Function, mod: IRModule) -> Function:
        builder = BlockBuilder.over(mod)
        rules = {key: [lambda graph, call, make=make: make(graph, builder, call)] for key, make in made_by.items()}
        rewriter = Rewriter(rules, func)
        made = rewriter.function(func)
        return remove_all_unused(made) if rewriter.changed else func

    return each_function(name, run)


def _transposed(graph: Rewriter, builder: BlockBuilder, call: Call) -> Any:
    inner = graph.call(call.args[1], PERMUTE)
    order = None if inner is None else order_of(inner)
    if inner is None or order is None or len(order) < 2 or not all(is_known(arg.struct_info) for arg in (call.args[0], inner)):
        return None
    count = len(order)
    if order != [*range(count - 2), count - 1, count - 2]:
        return None

    def product(x: Any, w: Any) -> Any:
        return matmul_of(x, w, call.attrs["out_dtype"], transposed=True, name="NT_matmul")

    return builder.call_te(product, call.args[0], inner.args[0], primfunc_name_hint="NT_matmul")


def _fast(function: Callable[..., Any]) -> Make:
    def make(graph: Rewriter, builder: BlockBuilder, call: Call) -> Any:
        info: Any = call.struct_info
        if not is_known(info) or info.dtype != "float32":
            return None
        return builder.call_te(function, call.args[0], primfunc_name_hint=function.__name__)

    return make


def FuseTransposeMatmul() -> ModulePass:
    """A pass: a product with a transposed matrix becomes a tensor function that reads the matrix as it is, `NT_matmul`."""
    return _by_te("FuseTransposeMatmul", {"relax.matmul": _transposed})


def FastMathTransform() -> ModulePass:
    """A pass: exp, erf and tanh of float32 become polynomials, which are off by more than rounding."""
    table = {"relax.exp": topi.fast_exp, "relax.erf": topi.fast_erf, "relax.tanh": topi.fast_tanh}
    return _by_te("FastMathTransform", {name: _fast(function) for name, function in table.items()})
