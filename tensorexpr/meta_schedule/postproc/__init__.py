"""What is done with every program before it is measured.

postproc    the protocol, and the lists for kinds of targets;  default: those for CPUs and GPUs
blocks      the blocks of a program, and how they go through memory

async_copies                        rejects copies of parts of memory that nobody waits for
verify                              rejects what can't be measured, and what a GPU has no room for
rewrite_parallel_vectorize_unroll   what the root asks for is done to blocks
rewrite_blocks                      inits stand before reductions; marked blocks become intrinsics
gpu_threads                         loads and blocks are shared by threads
rewrite_layout                      weights in the order of their use
"""

from __future__ import annotations

from . import default
from .async_copies import DisallowAsyncStridedMemCopy
from .gpu_threads import RewriteCooperativeFetch, RewriteUnboundBlock
from .postproc import Postproc, PyPostproc, create
from .rewrite_blocks import RewriteReductionBlock, RewriteTensorize
from .rewrite_layout import RewriteLayout
from .rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from .verify import DisallowDynamicLoop, VerifyGPUCode

__all__ = [
    "DisallowAsyncStridedMemCopy",
    "DisallowDynamicLoop",
    "Postproc",
    "PyPostproc",
    "RewriteCooperativeFetch",
    "RewriteLayout",
    "RewriteParallelVectorizeUnroll",
    "RewriteReductionBlock",
    "RewriteTensorize",
    "RewriteUnboundBlock",
    "VerifyGPUCode",
    "create",
    "default",
]
