"""The postprocessors for CPUs and GPUs."""

from __future__ import annotations

from .gpu_threads import RewriteCooperativeFetch, RewriteUnboundBlock
from .postproc import Postproc
from .rewrite_blocks import RewriteReductionBlock, RewriteTensorize
from .rewrite_layout import RewriteLayout
from .rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from .verify import DisallowDynamicLoop, VerifyGPUCode


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


def _gpu() -> list[Postproc]:
    return [
        DisallowDynamicLoop(),
        RewriteCooperativeFetch(),
        RewriteUnboundBlock(max_threadblocks=256),
        RewriteParallelVectorizeUnroll(),
        RewriteReductionBlock(),
        VerifyGPUCode(),
    ]


def _tensor_cores() -> list[Postproc]:
    # last, as it takes longest: only of what a GPU has room for
    return [*_gpu(), RewriteTensorize()]


Postproc.kinds.update(
    {"cuda": _gpu, "cuda-tensorcore": _tensor_cores, "llvm": _plain, **dict.fromkeys(("vnni", "avx512", "neon", "dotprod"), _tensorized)}
)
