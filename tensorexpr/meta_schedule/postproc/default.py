"""The postprocessors for CPUs."""

from __future__ import annotations

from .disallow_dynamic_loop import DisallowDynamicLoop
from .postproc import Postproc
from .rewrite_layout import RewriteLayout
from .rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from .rewrite_reduction_block import RewriteReductionBlock
from .rewrite_tensorize import RewriteTensorize


def _plain() -> list[Postproc]:
    return [DisallowDynamicLoop(), RewriteParallelVectorizeUnroll(), RewriteReductionBlock(), RewriteLayout()]


def _tensorized() -> list[Postproc]:
    return [
        DisallowDynamicLoop(),
        RewriteParallelVectorizeUnroll(),
        RewriteReductionBlock(),
        RewriteTensorize(vectorize_init_loop=True),
        RewriteLayout(),
    ]


Postproc.defaults.update({"llvm": _plain, "vnni": _tensorized, "avx512": _tensorized})
