"""Passes of graphs, by their customary names: `relax.transform.LegalizeOps()(mod)`."""

from ...later import later
from .alter_impl import AlterOpImpl
from .annotate_pattern import AnnotateTIROpPattern
from .bind import BindParams, BindSymbolicVars
from .canonicalize import CanonicalizeBindings
from .channels_last import ChannelsLast
from .closures import LambdaLift
from .common import EliminateCommonSubexpr
from .convert_layout import ConvertLayout
from .dataflow import ConvertToDataflow, ToNonDataflow
from .decompose import DecomposeOpsForInference, DecomposeOpsForTraining
from .devices import RealizeVDevice, UpdateVDevice
from .fake_quantization import FakeQuantizationToInteger
from .fold_scale import FoldScaleAxis
from .fuse_by_pattern import FuseOpsByPattern, FusionPattern, PatternCheckContext
from .fuse_ops import FuseOps
from .fuse_tir import FuseTIR
from .gradient import Gradient
from .identities import SimplifyExpr
from .inline import InlinePrivateFunctions
from .inplace import DataflowUseInplaceCalls
from .layout_free import AttachAttrLayoutFreeBuffers
from .lazy import LazyGetInput, LazySetOutput, LazyTransformParams
from .legalize import LegalizeOps
from .lift_params import LiftTransformParams
from .memory import CallTIRRewrite, KillAfterLastUse, LowerAllocTensor, StaticPlanBlockMemory
from .merge_composite import MergeCompositeFunctions
from .minimal_filtering import MinimalFiltering
from .mixed_precision import ToMixedPrecision
from .normalize import AttachGlobalSymbol, Normalize, NormalizeGlobalVar
from .order import TopologicalSort
from .pads import FoldPads
from .parallel import CombineParallelMatmul
from .parameters import BundleModelParams, UpdateParamStructInfo
from .passes import dataflowblock_pass, function_pass
from .patterns import RecognizePatterns
from .products import AdjustMatmulOrder, ExpandMatmulOfSum, ReorderTakeAfterMatmul
from .purity import RemovePurityChecking
from .reshapes import RemoveRedundantReshape
from .run_codegen import RunCodegen
from .runtime_builtins import ComputePrimValue, LowerRuntimeBuiltin, VMBuiltinLower, VMShapeLower
from .signatures import ExpandTupleArguments, RemoveUnusedOutputs, RemoveUnusedParameters
from .simple import DeadCodeElimination, FoldConstant
from .simplify import Simplify
from .split_layout_rewrite import SplitLayoutRewritePreproc
from .static_quantization import StaticQuantization
from .subnormals import DropSubnormals
from .te_rewrites import FastMathTransform, FuseTransposeMatmul
from .transposes import OptimizeLayoutTransform, ReorderPermuteDimsAfterConcat
from .views import RewriteDataflowReshape

# A search loads more than all graphs do.
_LATER = {".meta_schedule": "FewShotTuning MetaScheduleApplyDatabase MetaScheduleTuneIRMod MetaScheduleTuneTIR"}
__getattr__, __dir__ = later(__name__, _LATER)

__all__ = [
    "AdjustMatmulOrder", "AlterOpImpl", "AnnotateTIROpPattern", "AttachAttrLayoutFreeBuffers", "AttachGlobalSymbol", "BindParams",
    "BindSymbolicVars", "BundleModelParams", "CallTIRRewrite", "CanonicalizeBindings", "ChannelsLast", "CombineParallelMatmul",
    "ComputePrimValue", "ConvertLayout", "ConvertToDataflow", "DataflowUseInplaceCalls", "DeadCodeElimination",
    "DecomposeOpsForInference", "DecomposeOpsForTraining", "DropSubnormals", "EliminateCommonSubexpr", "ExpandMatmulOfSum",
    "ExpandTupleArguments", "FakeQuantizationToInteger", "FastMathTransform", "FewShotTuning", "FoldConstant", "FoldPads",
    "FoldScaleAxis", "FuseOps", "FuseOpsByPattern", "FuseTIR", "FuseTransposeMatmul", "FusionPattern", "Gradient",
    "InlinePrivateFunctions", "KillAfterLastUse", "LambdaLift", "LazyGetInput", "LazySetOutput", "LazyTransformParams", "LegalizeOps",
    "LiftTransformParams", "LowerAllocTensor", "LowerRuntimeBuiltin", "MergeCompositeFunctions", "MetaScheduleApplyDatabase",
    "MetaScheduleTuneIRMod", "MetaScheduleTuneTIR", "MinimalFiltering", "Normalize", "NormalizeGlobalVar", "OptimizeLayoutTransform",
    "PatternCheckContext",
    "RealizeVDevice", "RecognizePatterns", "RemovePurityChecking", "RemoveRedundantReshape", "RemoveUnusedOutputs",
    "RemoveUnusedParameters", "ReorderPermuteDimsAfterConcat", "ReorderTakeAfterMatmul", "RewriteDataflowReshape", "RunCodegen",
    "Simplify", "SimplifyExpr", "SplitLayoutRewritePreproc", "StaticPlanBlockMemory", "StaticQuantization", "ToMixedPrecision",
    "ToNonDataflow", "TopologicalSort", "UpdateParamStructInfo", "UpdateVDevice", "VMBuiltinLower", "VMShapeLower",
    "dataflowblock_pass", "function_pass",
]  # fmt: skip
