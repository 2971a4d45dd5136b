"""Passes as users see them: `tir.transform` and `transform`.

A pass is applied to an IRModule and returns one. `PASSES` says which file makes the pass of which name; a file is loaded
when its pass is first asked for.

house, blocks            the passes of the pipeline itself
decorators, combinators, function_pass     passes made of functions, and of other passes
the other files          one pass each, on IR as TVM has it at that point; they are not part of the pipeline
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..context import PassContext
from ..passes import ModulePass, Pass, PassInfo, PrimFuncPass
from .combinators import Apply, ApplyPassToFunction, Filter, PrintIR, Sequential
from .decorators import module_pass, prim_func_pass

# Pass -> the module here that makes it.
PASSES: dict[str, str] = {
    **dict.fromkeys(
        ("StorageFlatten", "TrimNoOps", "LoopPartition",
         "InjectDoubleBuffer", "UnrollRegisterTile",
         "UnrollLoop", "RegisterPromotion", "StorageRewrite",
         "InstrumentBoundCheckers", "ConvertForLoopsToSerial", "SkipAssert", "InjectPrefetch"), "house",
    ),
    **dict.fromkeys(
        ("LowerInitBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque", "InjectSoftwarePipeline",
         "LowerAutoCopy"), "blocks",
    ),
    "AnnotateDeviceRegions": "annotate_device_regions",
    "HoistExpression": "hoist_expression",
    "HoistIfThenElse": "hoist_if_then_else",
    "InjectVirtualThread": "inject_virtual_thread",
    "InlinePrivateFunctions": "inline_private_functions",
    "LowerDeviceKernelLaunch": "lower_device_kernel_launch",
    "SplitHostDevice": "split_host_device",
    "AnnotateEntryFunc": "annotate_entry_func",
    "BF16ComputeLegalize": "bf16_compute_legalize",
    "BF16StorageLegalize": "bf16_storage_legalize",
    "FP8ComputeLegalize": "fp8_compute_legalize",
    "FP8StorageLegalize": "fp8_storage_legalize",
    "BindTarget": "bind_target",
    "CommonSubexprElimTIR": "common_subexpr_elim_tir",
    "CompactBufferAllocation": "compact_buffer_allocation",
    "ConvertSSA": "convert_ssa",
    "FlattenBuffer": "flatten_buffer",
    "ForceNarrowIndexToInt32": "force_narrow_index_to_int32",
    "LowerCrossThreadReduction": "lower_cross_thread_reduction",
    "LowerThreadAllreduce": "lower_thread_allreduce",
    "LowerMatchBuffer": "lower_match_buffer",
    "LowerOpaqueBlock": "lower_opaque_block",
    "LowerTVMBuiltin": "lower_tvm_builtin",
    "LowerWarpMemory": "lower_warp_memory",
    "LowerDeviceStorageAccessInfo": "lower_device_storage_access_info",
    "ExtractPrimFuncConstants": "extract_prim_func_constants",
    "CombineContextCall": "combine_context_call",
    "ManifestSharedMemoryLocalStage": "manifest_shared_memory_local_stage",
    "MakePackedAPI": "make_packed_api",
    "MakeUnpackedAPI": "make_unpacked_api",
    "NarrowDataType": "narrow_data_type",
    "DefaultGPUSchedule": "default_gpu_schedule",
    "DecorateDeviceScope": "decorate_device_scope",
    "InferFragment": "infer_fragment",
    "InjectPermutedLayout": "inject_permuted_layout",
    "InjectCopyIntrin": "inject_copy_intrin",
    "InjectPTXAsyncCopy": "inject_ptx_async_copy",
    **dict.fromkeys(("MergeSharedMemoryAllocations", "MergeDynamicSharedMemoryAllocations"), "merge_shared_memory_allocations"),
    "RenormalizeSplitPattern": "renormalize_split_pattern",
    "InjectRollingBuffer": "inject_rolling_buffer",
    "InstallDebugSpans": "install_debug_spans",
    "InstrumentProfileIntrinsics": "instrument_profile_intrinsics",
    "LiftThreadBinding": "lift_thread_binding",
    "LowerIntrin": "lower_intrin",
    "PointerValueTypeRewrite": "pointer_value_type_rewrite",
    "ReduceBranchingThroughOvercompute": "reduce_branching_through_overcompute",
    "RemoveNoOp": "remove_no_op",
    "Simplify": "simplify",
    "ThreadSync": "thread_sync",
    "RemoveWeightLayoutRewriteBlock": "remove_weight_layout_rewrite_block",
    "VerifyMemory": "verify_memory",
    "VerifyVTCMLimit": "verify_vtcm_limit",
    "LiftAttrScope": "lift_attr_scope",
    "RemoveAssume": "remove_assume",
    "RemoveStoreUndef": "remove_store_undef",
    "RewriteUnsafeSelect": "rewrite_unsafe_select",
    "TransformMmaBufferLayout": "transform_mma_buffer_layout",
    "UnifyThreadBinding": "unify_thread_binding",
    "VectorizeLoop": "vectorize_loop",
}  # fmt: skip

# What their options are made of, by the same rule.
_OPTIONS = dict.fromkeys(("HoistedConditionals", "HoistedLetBindings"), "hoist_expression")


def factory(name: str) -> Callable[..., Any]:
    """What makes the pass of this name."""
    made: Callable[..., Any] = getattr(importlib.import_module(f"{__name__}.{PASSES.get(name) or _OPTIONS[name]}"), name)
    return made


def __getattr__(name: str) -> Any:
    if name not in PASSES and name not in _OPTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = factory(name)
    return found


__all__ = [
    "Apply", "ApplyPassToFunction", "Filter", "ModulePass", "Pass", "PassContext", "PassInfo", "PrimFuncPass", "PrintIR", "Sequential",
    "module_pass", "prim_func_pass", *PASSES, *_OPTIONS,
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
