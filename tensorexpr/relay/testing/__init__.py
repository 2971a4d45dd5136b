"""Networks by name, from their papers, with weights that are not trained: `mod, params = relay.testing.resnet.get_workload(1)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.ndarray import NDArray, array
from ...tir.dtype import to_numpy
from ...tir.function import IRModule
from ..analysis import list_op_freqs
from ..build_module import create_executor
from ..prelude import Prelude
from ..transform import InferType
from . import byoc, dcgan, densenet, dqn, inception_v3, init, layers, lstm, mlp, mobilenet, resnet, squeezenet, synthetic, vgg
from .gradients import check_grad
from .init import create_workload
from .nat import count, make_nat_expr, make_nat_value
from .temp_op_attr import TempOpAttr


def run_opt_pass(expr: Any, opt_pass: Any, import_prelude: bool = False) -> Any:
    """What a pass makes of an expression; of a function a function.

    Args:
        expr: it.
        opt_pass: the pass.
        import_prelude: whether the pass sees the library of lists and trees.
    """
    mod = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(mod)
    found: Any = opt_pass(mod)["main"]
    return found if hasattr(expr, "params") else found.body


def run_infer_type(expr: Any) -> Any:
    """The expression with types, checked."""
    return run_opt_pass(expr, InferType())


def run_as_python(expr: Any, mod: Any = None, target: Any = "llvm") -> Any:
    """The value of an expression, by the name of a way to run programs without a virtual machine; here it is as `create_executor` has it.

    Args:
        expr: it; functions of `mod` may be called in it.
        mod: a module.
        target: what for.
    """
    return create_executor("debug", mod, target=target).evaluate(expr)


def count_ops(expr: Any) -> dict[str, int]:
    """How many calls of each operator an expression has."""
    return list_op_freqs(expr)


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """An array of random numbers of [0, 1)."""
    return array(np.asarray(np.random.rand(*shape)).astype(to_numpy(dtype)))


__all__ = [
    "TempOpAttr", "byoc", "check_grad", "count", "count_ops", "create_workload", "dcgan", "densenet", "dqn", "inception_v3",
    "init", "layers", "lstm", "make_nat_expr", "make_nat_value", "mlp", "mobilenet", "rand", "resnet", "run_as_python", "run_infer_type",
    "run_opt_pass", "squeezenet", "synthetic", "vgg",
]  # fmt: skip
