"""Products by libraries as AutoTVM's tasks for x86: they have no knobs, and stand in logs beside those that have.

There is nothing to tune in them, and they aren't measured: they call Python functions, which the measuring processes don't have. All of
them are the products of the BLAS inside NumPy; see `topi.x86`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autotvm.task.topi_integration import register_topi_compute, register_topi_schedule
from ...schedule.te_schedule import Schedule
from ...te.tensor import Tensor
from .. import x86
from ..schedules import default_schedule
from ..utils import get_const_int

NAMES = (
    "dense_cblas", "dense_mkl", "dense_dnnl", "matmul_cblas", "matmul_mkl", "matmul_dnnl", "batch_matmul_cblas", "batch_matmul_mkl",
)  # fmt: skip


def _registered(name: str) -> None:
    product: Callable[..., Tensor] = getattr(x86, name)

    def declared(cfg: Any, left: Tensor, right: Tensor, *args: Any) -> Tensor:
        out = product(left, right, *args)
        elements = 1
        for extent in out.shape:
            elements *= get_const_int(extent)
        # a library's call says nothing of what it computes
        transposed = args[2] if "dense" not in name and len(args) > 2 else False
        cfg.add_flop(2 * elements * get_const_int(left.shape[-2 if transposed else -1]))
        return out

    def scheduled(cfg: Any, outs: Any) -> Schedule:
        return default_schedule([outs] if isinstance(outs, Tensor) else list(outs))

    for function, kind in ((declared, ""), (scheduled, "schedule_")):
        function.__name__ = function.__qualname__ = f"{kind}{name}"
    register_topi_compute(f"{name}.x86", declared)
    register_topi_schedule(f"{name}.x86", scheduled)


for _name in NAMES:
    _registered(_name)
