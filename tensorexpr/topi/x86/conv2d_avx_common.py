"""What AutoTVM's templates for convolutions fall back on where no log has their workload."""

from __future__ import annotations

from typing import Any

from ...autotvm.task.knobs import OtherOptionEntity, SplitEntity, get_factors
from ..tasks.shared import free_registers, lanes


def fallback_knobs(cfg: Any, wkl: Any) -> None:
    """Set the knobs of a convolution: blocks of as many channels as a vector has lanes, and as many pixels as there are accumulators.

    Args:
        cfg: the configuration that is changed.
        wkl: the convolution, a record of `topi.nn.workload`.
    """
    width = (wkl.width + wkl.padl + wkl.padr - (wkl.kernel_w - 1) * wkl.dilation_w - 1) // wkl.stride_w + 1
    sizes = (("tile_ic", wkl.in_filter, lanes()), ("tile_oc", wkl.out_filter, lanes()), ("tile_ow", width, free_registers()))
    for name, extent, most in sizes:
        # The largest part of which there is a whole number.
        part = max(factor for factor in get_factors(extent) if factor <= most)
        cfg[name] = SplitEntity([extent // part, part])
    cfg["unroll_kw"] = OtherOptionEntity(False)


_fallback_schedule = fallback_knobs
