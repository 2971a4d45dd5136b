"""What is done with every program before it is measured.

postproc    the protocol, and the lists for kinds of targets;  default: those for CPUs and GPUs
blocks      the blocks of a program;  access_strides, how they go through memory

disallow_dynamic_loop               rejects what can't be measured
verify_gpu_code                     rejects what a GPU has no room for
rewrite_parallel_vectorize_unroll   what the root asks for is done to blocks
rewrite_reduction_block             inits stand before reductions
rewrite_tensorize                   marked blocks become intrinsics
rewrite_cooperative_fetch, rewrite_unbound_block     loads and blocks are shared by threads
rewrite_layout                      weights in the order of their use
"""

from __future__ import annotations

from . import default
from .disallow_dynamic_loop import DisallowDynamicLoop
from .postproc import Postproc, PyPostproc, create
from .rewrite_cooperative_fetch import RewriteCooperativeFetch
from .rewrite_layout import RewriteLayout
from .rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from .rewrite_reduction_block import RewriteReductionBlock
from .rewrite_tensorize import RewriteTensorize
from .rewrite_unbound_block import RewriteUnboundBlock
from .verify_gpu_code import VerifyGPUCode

__all__ = [
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
