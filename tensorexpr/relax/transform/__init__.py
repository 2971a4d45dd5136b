"""Passes of graphs, by their customary names: `relax.transform.LegalizeOps()(mod)`."""

from .annotate_pattern import AnnotateTIROpPattern
from .bind import BindParams, BindSymbolicVars
from .canonicalize import CanonicalizeBindings
from .closures import LambdaLift
from .common import EliminateCommonSubexpr
from .dataflow import ConvertToDataflow, ToNonDataflow
from .decompose import DecomposeOpsForInference, DecomposeOpsForTraining
from .fold_scale import FoldScaleAxis
from .fuse_ops import FuseOps
from .fuse_tir import FuseTIR
from .identities import SimplifyExpr
from .inline import InlinePrivateFunctions
from .legalize import LegalizeOps
from .memory import CallTIRRewrite, KillAfterLastUse, LowerAllocTensor, StaticPlanBlockMemory
from .normalize import AttachGlobalSymbol, Normalize, NormalizeGlobalVar
from .order import TopologicalSort
from .pads import FoldPads
from .parameters import BundleModelParams, UpdateParamStructInfo
from .passes import dataflowblock_pass, function_pass
from .patterns import RecognizePatterns
from .products import AdjustMatmulOrder, ExpandMatmulOfSum, ReorderTakeAfterMatmul
from .purity import RemovePurityChecking
from .reshapes import RemoveRedundantReshape
from .signatures import ExpandTupleArguments, RemoveUnusedOutputs, RemoveUnusedParameters
from .simple import DeadCodeElimination, FoldConstant
from .simplify import Simplify
from .transposes import OptimizeLayoutTransform, ReorderPermuteDimsAfterConcat
from .views import RewriteDataflowReshape

__all__ = [
    "AdjustMatmulOrder", "AnnotateTIROpPattern", "AttachGlobalSymbol", "BindParams", "BindSymbolicVars", "BundleModelParams",
    "CallTIRRewrite", "CanonicalizeBindings", "ConvertToDataflow", "DeadCodeElimination", "DecomposeOpsForInference",
    "DecomposeOpsForTraining", "EliminateCommonSubexpr", "ExpandMatmulOfSum", "ExpandTupleArguments", "FoldConstant", "FoldPads",
    "FoldScaleAxis", "FuseOps", "FuseTIR", "InlinePrivateFunctions", "KillAfterLastUse", "LambdaLift", "LegalizeOps",
    "LowerAllocTensor", "Normalize", "NormalizeGlobalVar", "OptimizeLayoutTransform", "RecognizePatterns", "RemovePurityChecking",
    "RemoveRedundantReshape", "RemoveUnusedOutputs", "RemoveUnusedParameters", "ReorderPermuteDimsAfterConcat",
    "ReorderTakeAfterMatmul", "RewriteDataflowReshape", "Simplify", "SimplifyExpr", "StaticPlanBlockMemory", "ToNonDataflow",
    "TopologicalSort", "UpdateParamStructInfo", "dataflowblock_pass", "function_pass",
]  # fmt: skip
